// SPDX-License-Identifier: Apache-2.0
//
// Network: connections that carry frames. One of the seams (docs/ARCHITECTURE.md): host/grpc speaks gRPC
// over TCP, with TLS; host/sim moves frames over simulated links in virtual time. Everything above a frame,
// who is at the other end, resending, credits, priorities, is the same code on both (net/link).
//
// A connection is ordered and loses nothing while it lives; it may break at any moment, and then what was
// sent last may or may not have arrived. Each belongs to one lane: control messages and exchanges must never
// queue behind bulk, so the two travel over separate TCP connections (docs/protocols/link.md).
//
// Events reach the sink in order for each connection, from any thread; a real host hands them to the loop
// thread's mailbox. For an outgoing connection: Opened once or never, then Received and Written, then Closed,
// exactly once and last. For an incoming one: Accepted, then the same.
//
// Beside connections there are questions (host/api/question.h): one message there, one back, answered by
// whoever listens there for control. A run with certificates lets strangers, who have none, ask; every
// connection of theirs is refused before Accepted.
//
// Back-pressure: after frames of cost() kReadAhead that nobody called consumed() for, no more is read, and
// the other side's Written events stop coming. A frame costs something even if it is empty, so that a flood
// of small ones fills no mailbox.
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

// "control" or "bulk".
[[nodiscard]] const char* name(Lane lane);

// The name in the certificate that the other end has proven to own; empty where the run uses no TLS, and for
// strangers, who may only ask.
struct PeerName {
  std::string certificate;

  auto operator<=>(const PeerName&) const = default;
};

// We reached the other end.
struct Opened {
  ConnectionId connection;
  PeerName peer;
};
// Somebody reached us. `from` is an address for people to read; behind NAT it is not the node's own. `host`
// is the part of it that all connections from one machine have in common.
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
// `bytes` of the frames sent have left this process, or leave with the frame behind them: there is room for
// as many.
struct Written {
  ConnectionId connection;
  std::uint64_t bytes = 0;
};
// The connection is gone, or never came to be. `reason.where` names the other end.
struct Closed {
  ConnectionId connection;
  Error reason;
};
// The end of a question of ours: exactly once for each, whatever happens there and in between. An error is
// the one that was answered (its kind and parts are those given there, made_fit), or says why there is no
// answer; its `where` names the other end unless the answerer named something. Without an answer nobody knows
// whether the question was acted on.
struct Answered {
  QuestionId question;
  Result<std::string> answer;
};
// Somebody asks; answer() ends it. `from` is an address for people to read.
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
  // No frame is larger; a receiver closes a connection on which one is.
  static constexpr std::uint64_t kMaxFrameBytes = 2ULL << 20;
  // The cost of one connection's unconsumed frames after which no more is read (one frame more may come).
  static constexpr std::uint64_t kReadAhead = 8ULL << 20;
  // About what a frame takes in memory beside its bytes, as an event in a mailbox.
  static constexpr std::uint64_t kFrameCost = 512;

  // What a received frame counts as until it is consumed. Written counts bytes alone.
  [[nodiscard]] static std::uint64_t cost(const Slices& frame) { return kFrameCost + total_bytes(frame); }

  Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  // Accepts connections of one lane, and on the control lane questions. Port 0 takes a free one; the endpoint
  // returned is the true one. An error names the endpoint: taken, not ours, not allowed.
  [[nodiscard]] virtual Result<Endpoint> listen(const Endpoint& at, Lane lane) = 0;

  // Starts to open a connection; Opened or Closed tells how it went, within the host's own time-out.
  [[nodiscard]] virtual ConnectionId connect(const Endpoint& to, Lane lane) = 0;

  // Queues a frame; never blocks. The caller bounds the queue by Written events. What is sent before Opened
  // waits for it; on a connection that is gone the frame is dropped. Requires at most kMaxFrameBytes.
  virtual void send(ConnectionId connection, Slices frame) = 0;

  // The receiver is done with frames that came on the connection, whose cost() adds up to `cost`. Never more
  // than what came.
  virtual void consumed(ConnectionId connection, std::uint64_t cost) = 0;

  // Ends the connection at once, both ways: what is queued is lost. Closed follows here and at the other end.
  virtual void close(ConnectionId connection) = 0;

  // Asks whoever listens for control at `to`. Answered follows, also if the question is too large, the other
  // end busy or not there; at the latest after the question's time-out. Requires a method name and a time-out
  // within their bounds.
  [[nodiscard]] virtual QuestionId ask(const Endpoint& to, Question question) = 0;

  // Answers a question that was Asked, at any time. Nothing happens if it was answered already or the asker
  // no longer waits. An answer that is too large becomes an error that says so.
  virtual void answer(QuestionId question, Result<std::string> answer) = 0;
};

}  // namespace gossamer::host
