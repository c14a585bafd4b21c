// SPDX-License-Identifier: Apache-2.0
//
// Network: connections that carry frames. One of the seams (docs/ARCHITECTURE.md): host/grpc speaks gRPC over
// TCP, with TLS; host/sim moves frames over simulated links in virtual time. Everything above a frame is the
// same code on both (net/link): identity of the other end, resending, credits, priorities.
//
// A connection is ordered and loses nothing while it lives. It may break at any moment, and then the frames
// sent last may or may not have arrived. Each connection belongs to one lane. Control messages and exchanges
// must never queue behind bulk, so the two lanes travel over separate TCP connections
// (docs/protocols/link.md).
//
// Events reach the sink in order for each connection, from any thread; a real host hands them to the loop
// thread's mailbox. An outgoing connection gives Opened once or never, then Received and Written, then
// Closed, exactly once and last. An incoming one gives Accepted, then the same.
//
// Beside connections there are questions (host/api/question.h): one message there, one back. The process that
// listens there for control answers. Where a run has certificates, strangers, which have none, may ask
// questions; every connection of theirs is refused before Accepted.
//
// Back-pressure: the host reads no more once unconsumed frames of a connection cost kReadAhead, by cost().
// Then the other side's Written events stop coming. consumed() lets it read on. A frame costs something even
// if it is empty, so that a flood of small ones fills no mailbox.
//
// Thread rule: any thread. No event comes after the destructor has returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "host/api/endpoint.h"
#include "host/api/question.h"

namespace gossamer::host {

// Names a connection for the life of its Network; never used twice.
using ConnectionId = StrongId<struct ConnectionIdTag>;

enum class Lane : std::uint8_t {
  kControl = 0,  // small and urgent: heartbeats, agreement, a step's exchange
  kBulk = 1,     // large: state, data, snapshots
};
inline constexpr std::size_t kLanes = 2;
// Larger messages go on the bulk lane, as they would hold up small and urgent ones.
inline constexpr std::uint64_t kBulkBytes = std::uint64_t{1} << 20;

// "control" or "bulk".
[[nodiscard]] const char* name(Lane lane);

// The common name in the other end's certificate, which that end has proven to own. Empty where the run uses
// no TLS, and for strangers, which may only ask.
struct PeerName {
  std::string certificate;

  auto operator<=>(const PeerName&) const = default;
};

// This side reached the other end.
struct Opened {
  ConnectionId connection;
  PeerName peer;
};
// The other end reached this process. `from` is an address for people to read; behind NAT it is not the
// node's own. `host` is the part of it that all connections from one machine have in common.
struct Accepted {
  ConnectionId connection;
  Lane lane = Lane::kControl;
  PeerName peer;
  std::string from;
  std::string host;
};
struct Received {
  ConnectionId connection;
  Slices frame;
};
// `bytes` of the frames sent have left this process, or leave with the frame behind them. There is room for
// as many again.
struct Written {
  ConnectionId connection;
  std::uint64_t bytes = 0;
};
// The connection is gone, or never came to be. `reason.where` names the other end.
struct Closed {
  ConnectionId connection;
  Error reason;
};
// The end of a question that this process asked. It comes exactly once for each, whatever happens there and
// in between. The answer may be an error that was given there: then kind and parts are those, made_fit().
// Otherwise an error says why there is no answer. `where` of an error names the other end, unless the
// answerer named something. Without an answer nobody knows whether the question was acted on.
struct Answered {
  QuestionId question;
  Result<std::string> answer;
};
// A question for this process; answer() ends it. `from` is an address for people to read.
struct Asked {
  QuestionId question;
  std::string method;
  PeerName peer;  // empty: a stranger, or a run without TLS
  std::string from;
  std::string body;
};
using NetworkEvent = std::variant<Opened, Accepted, Received, Written, Closed, Answered, Asked>;
using NetworkSink = std::function<void(NetworkEvent)>;

class Network {
 public:
  // The largest frame. A receiver closes a connection on which a larger one comes. A connection of any node
  // can hold so much here before its first frame is whole.
  static constexpr std::uint64_t kMaxFrameBytes = 128ULL << 10;
  // The cost of one connection's unconsumed frames after which no more is read. One frame more may come.
  static constexpr std::uint64_t kReadAhead = 8ULL << 20;
  // About the memory that a frame takes beside its bytes, as an event in a mailbox.
  static constexpr std::uint64_t kFrameCost = 512;

  // The cost of a received frame until it is consumed. Written counts bytes alone.
  [[nodiscard]] static std::uint64_t cost(const Slices& frame) { return kFrameCost + total_bytes(frame); }

  Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  // Accepts connections of one lane, and on the control lane questions. Port 0 takes a free one; the endpoint
  // returned is the true one. An error names the endpoint and says why: taken, not an address of this
  // machine, not allowed.
  [[nodiscard]] virtual Result<Endpoint> listen(const Endpoint& at, Lane lane) = 0;

  // Starts to open a connection; Opened or Closed tells how it went, within the host's own time-out.
  [[nodiscard]] virtual ConnectionId connect(const Endpoint& to, Lane lane) = 0;

  // Queues a frame; never blocks. The caller bounds the queue by Written events. What is sent before Opened
  // waits for it; on a connection that is gone the frame is dropped. Requires at most kMaxFrameBytes.
  virtual void send(ConnectionId connection, Slices frame) = 0;

  // The receiver is done with frames of the connection whose cost() adds up to `cost`. Never more than what
  // came.
  virtual void consumed(ConnectionId connection, std::uint64_t cost) = 0;

  // Ends the connection at once, both ways: what is queued is lost. Closed follows here and at the other end.
  virtual void close(ConnectionId connection) = 0;

  // Asks the process that listens for control at `to`. Answered follows at the latest after the question's
  // time-out. It also follows if the question is too large, or if the other end is busy or not there.
  // Requires a method name and a time-out within their bounds.
  [[nodiscard]] virtual QuestionId ask(const Endpoint& to, Question question) = 0;

  // Answers a question that was Asked, at any time. Nothing happens if it was answered already or the asker
  // no longer waits. An answer that is too large becomes an error that says so.
  virtual void answer(QuestionId question, Result<std::string> answer) = 0;
};

}  // namespace gossamer::host
