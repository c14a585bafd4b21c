// SPDX-License-Identifier: Apache-2.0
//
// The door of a listening process accepts every connection of both lanes, on a thread of its own. It keeps
// strangers from gRPC (ADR 24). It waits for the first bytes of a connection, and lets OpenSSL say what the
// other end offers (hello_reader.h):
//
//   - kAskProtocol: a stranger. The door itself takes its one question and gives the answer
//     (ask_session.h). At the port of a bulk lane a stranger only sees the certificates.
//   - kGrpcProtocol: the socket goes to gRPC as it is. gRPC wants a certificate of the run in the handshake.
//   - anything else: the connection is closed.
//
// DoorBook says how many of them there may be, and for how long. When descriptors run out, the oldest unread
// guest makes room; a descriptor is kept in reserve so that the port goes on in any case.
//
// A run without certificates has no strangers: every connection goes to gRPC at once.
//
// Events come from the door's thread. Thread rule: any thread, but the sink must not destroy the door.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/api/network.h"
#include "host/posix/clock.h"
#include "host/posix/door/ask_session.h"
#include "host/posix/door/credentials.h"
#include "host/posix/door/door_book.h"
#include "host/posix/door/handshake_rate.h"
#include "host/posix/door/hello_reader.h"
#include "host/posix/door/listening.h"
#include "host/posix/door/peer_address.h"
#include "host/posix/door/tls_session.h"
#include "host/system/descriptor.h"

namespace gossamer::host {

// Gives out the numbers of one Network's questions.
using QuestionNumbers = std::atomic<std::uint64_t>;

class Door {
 public:
  // Takes an accepted socket, which it closes.
  using HandOver = std::function<void(int socket)>;
  struct Options {
    std::optional<NetworkCredentials> credentials;
    DoorLimits limits;
    NetworkSink sink;  // gets Asked
  };

  // The error: the credentials are no certificate and its key, or the system has no epoll for us.
  [[nodiscard]] static Result<std::unique_ptr<Door>> open(Options options, QuestionNumbers& numbers);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door() { end(); }

  // Closes all connections that were not handed over. No event and no hand-over follows. The other functions
  // may still be called, and do nothing.
  void end();

  // Accepts at these sockets from now on. `hand_over` is called on the door's thread. Gives the number of the
  // listener, for shown().
  std::uint64_t serve(Listening listening, Lane lane, HandOver hand_over);

  // Shows another certificate to guests from now on. Requires credentials from the beginning. The error is
  // that of open(), and nothing has changed then.
  [[nodiscard]] Result<void> renew(const NetworkCredentials& credentials);

  // The peer with this name of gRPC's has shown its certificate at that listener: it is no stranger.
  void shown(std::uint64_t listener, const std::string& peer);
  // Answers a question of a stranger; nothing happens for other numbers, and for those that are over.
  void answer(QuestionId question, Result<std::string> answer);

 private:
  struct Listener {
    Lane lane = Lane::kControl;
    HandOver hand_over;
    Descriptor socket;
    std::uint64_t number;  // of all sockets of one serve()
  };
  struct Guest {
    std::uint64_t listener = 0;
    PeerAddress peer;
    Descriptor socket;
    std::unique_ptr<HelloReader> hello = {};      // while it is read
    std::optional<HelloReader::Guest> kind = {};  // while it waits for its handshake
    std::unique_ptr<AskSession> session = {};     // of an asker
    std::string output = {};                      // what the socket has not taken yet
    std::optional<QuestionId> question = {};      // that waits for its answer
    bool with_grpc = false;                       // which has a descriptor of its own
    bool last_word = false;                       // the connection ends with `output`
  };
  using Guests = std::map<GuestId, Guest>;

  Door(Options options, QuestionNumbers& numbers, TlsContext door, TlsContext look);
  [[nodiscard]] bool start();
  void run();
  void command(std::function<void()> action);
  void obey();
  [[nodiscard]] int patience_ms() const;

  void accept_some(Listener& listener);
  void out_of_descriptors(Listener& listener);
  void welcome(const Listener& listener, Descriptor socket, const PeerAddress& peer);
  void on_guest(GuestId id, std::uint32_t events);
  void read_hello(Guests::iterator at);
  [[nodiscard]] const Listener& listener_of(const Guest& guest) const;
  void begin_handshake(Guests::iterator at);
  void give_turns();
  void hand_over(Guests::iterator at);
  void read_question(Guests::iterator at);
  void on_question(Guests::iterator at);
  void flush(Guests::iterator at);
  void give(GuestId id, const Result<std::string>& answer);
  // Ends a guest, whichever state it has; its connection ends too, wherever it is.
  void turn_out(GuestId id);
  // Forgets a guest that stays with gRPC.
  void let_go(GuestId id);
  [[nodiscard]] bool watch(int operation, int socket, std::uint32_t events, std::uint64_t key) const;

  const Options options_;
  QuestionNumbers& numbers_;
  TlsContext door_context_;  // null without credentials; used by the door's thread alone
  const TlsContext look_context_;
  const PosixClock clock_;
  Descriptor epoll_;
  Descriptor wake_;
  std::optional<Descriptor> reserve_;

  // Used by the door's thread alone.
  DoorBook book_;
  HandshakeRate rate_;
  std::map<std::uint64_t, Listener> listeners_;  // by key
  Guests guests_;
  std::map<std::pair<std::uint64_t, PeerAddress>, GuestId> handed_;
  std::map<QuestionId, GuestId> questions_;
  std::uint64_t next_key_ = 1;
  bool ending_ = false;
  bool resting_ = false;  // no accept for a moment, as there was no descriptor at all

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::function<void()>> commands_;
  std::uint64_t listeners_given_ = 0;

  std::thread thread_;
};

}  // namespace gossamer::host
