// SPDX-License-Identifier: Apache-2.0
//
// MemberProcess: a process that wants to be in a run. It begins, has Links and a Member for as long as that
// life lasts, and begins anew after it was fenced. A pure state machine over the Network.
//
// Thread rule: one owner, the loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "cluster/control/member.h"
#include "host/api/network.h"
#include "net/link/channels.h"
#include "net/link/links.h"

namespace gossamer::cluster {

// A life has begun; links and member are new.
struct LifeBegun {
  net::PeerId self;
  std::string configuration;
  std::vector<host::Endpoint> coordinators;  // all known ones, those of the options first
};
// A life is over. `again`: another one will be tried. Otherwise the process is done; `error` is set unless it
// left by itself.
struct LifeEnded {
  std::optional<Error> error;
  bool again = false;
};
// No coordinator gave it a life yet. It goes on asking at the next address.
struct BeginFailed {
  Error error;
};
// Events in the order in which they happened. Arrived: a message of a member, on a channel of the engine.
using ProcessEvent = std::variant<LifeBegun, LifeEnded, BeginFailed, MemberEvent, net::Arrived>;

class MemberProcess {
 public:
  struct Options {
    std::string run;
    std::string name;                          // for people
    std::vector<host::Endpoint> coordinators;  // control addresses; at least one
    membership::Listening listening;           // empty behind NAT
    // Set where addresses change: asked before each Begin, and replaces `listening`.
    std::function<membership::Listening()> look_up = {};
    std::string machine = {};  // the network stack: loopback addresses work within it alone
    std::uint64_t memory_bytes = 0;
    std::uint32_t cores = 1;
    std::string program;
    Duration patience = from_seconds(600);  // how long it goes on without a coordinator
    std::uint64_t seed = 0;
    Defect defect = Defect::kNone;
    ProbeCounts<ControlProbe>* probes = nullptr;
    // Changes what it says to its coordinator: a liar in a simulation.
    std::function<void(membership::ToCoordinator&)> falsify = {};
    // As in Member::Options.
    std::function<Told()> told = {};
    std::function<Duration()> work_time = {};
    ProbeCounts<net::LinkProbe>* link_probes = nullptr;
    std::function<void(const net::LinkEvent&)> watch_links = {};  // gets every event
  };
  static constexpr Duration kBeginEvery{500'000'000};
  static constexpr Duration kBeginTime{5'000'000'000};
  // A question and the pause before it take no longer. In the time beyond this process stood still.
  static constexpr Duration kTryAtMost{10'000'000'000};
  // For an answer to `Lead`. The first question to an address opens a connection, four round trips.
  static constexpr Duration kLeadTime{6'000'000'000};
  static constexpr Duration kShortLife{60'000'000'000};  // also the longest wait between two lives

  MemberProcess(Options options, host::Network& network, Instant now);

  void on(host::NetworkEvent event, Instant now);
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;
  // Ends this life, if there is one, and begins another.
  void begin_anew(const Error& why, Instant now);
  // To be called after every other call, until it is empty: the engine's reactions make further events.
  [[nodiscard]] std::vector<ProcessEvent> take_events();

  // Null between lives.
  [[nodiscard]] Member* member() { return member_.get(); }
  [[nodiscard]] net::Links* links() { return links_.get(); }
  [[nodiscard]] bool done() const { return done_; }

 private:
  void ask_begin(Instant now);
  void not_begun(const Error& why, Instant now);
  void on_begun(const Result<std::string>& answer, Instant now);
  void learn_coordinators(const membership::LeadAnswer& lead);
  void gather(net::LinkEvents& events, Instant now);
  void finish(const MembershipEnded& last_word);
  void run_ended(const membership::StopAsked& stop);

  const Options options_;
  host::Network& network_;
  Rng rng_;
  std::vector<ProcessEvent> events_;
  bool done_ = false;
  Instant now_;  // of the last call
  bool had_life_ = false;
  Instant life_began_;
  Duration wait_;  // before the next life

  membership::Listening listening_;
  std::vector<host::Endpoint> coordinators_;
  std::size_t next_coordinator_ = 0;
  Duration tried_;  // in vain, since the last life
  std::optional<Instant> tried_until_;
  std::optional<Instant> next_begin_;
  std::optional<host::QuestionId> begin_;
  std::set<host::QuestionId> leads_;
  std::unique_ptr<net::Links> links_;
  std::unique_ptr<Member> member_;
};

}  // namespace gossamer::cluster
