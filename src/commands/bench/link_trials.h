// SPDX-License-Identifier: Apache-2.0
//
// LinkTrials is what one node of a small mesh does to measure its links. All nodes run the same
// program, and node 1 leads it. All times are differences on one node's clock, so the machines' clocks
// need not agree. The trials are:
//
//   round-trip           64 bytes to node 2 and back on the control lane, nothing else under way
//   message              one bulk message from node 1 to node 2, until its answer; the first is the cold one
//   messages             as many bytes in small messages
//   exchange             rounds in lock-step: a node sends to all others, and goes on when it has theirs
//   control-beside-bulk  round-trip again, while bulk messages to node 2 follow each other
//
// LinkTrials is a pure state machine over net::Links. The owner opens the links, passes on what they say, and
// calls tick() at next_wakeup(). Thread rule: one owner, the loop thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "net/link/links.h"

namespace gossamer::commands {

enum class LinkTrial : std::uint8_t { kRoundTrip, kMessage, kMessages, kExchange, kControlBesideBulk };

// "round-trip", ...
[[nodiscard]] const char* name(LinkTrial trial);

struct LinkTrialPlan {
  std::vector<LinkTrial> trials;         // in this order; the first is kRoundTrip
  std::uint64_t bytes = 64ULL << 20;     // of kMessage and kMessages; of each message beside control
  std::uint64_t message_bytes = 4096;    // of each of kMessages
  std::uint64_t exchange_bytes = 65536;  // to each peer in a round
  std::uint64_t transfers = 5;           // of kMessage and kMessages, the first one included
  std::uint64_t rounds = 200;            // of kExchange, after some that do not count
  std::uint64_t pings = 100;             // of kRoundTrip and kControlBesideBulk
};

// The plan as text. All nodes must have the same.
[[nodiscard]] std::string to_string(const LinkTrialPlan& plan);

struct LinkTrialTimes {
  LinkTrial trial = LinkTrial::kRoundTrip;
  std::uint64_t bytes = 0;           // bytes that each of `seconds` was for; to each peer
  std::vector<double> seconds = {};  // in order: whole round trips, whole transfers with their answer, rounds
  double cpu_seconds = 0;            // processor time of this process, for all of them
  double bulk_bytes_per_second = 0;  // bulk acknowledged in kControlBesideBulk
};

class LinkTrials {
 public:
  struct Options {
    NodeId self;
    std::uint64_t nodes = 2;  // 1 .. nodes, all linked with each other; node 1 leads
    LinkTrialPlan plan;
    Duration patience{30'000'000'000};          // failure() when nothing moves for so long
    std::function<Duration()> cpu = {};         // processor time of this process so far
    std::function<void(LinkTrial)> begun = {};  // called when a trial begins
  };
  static constexpr std::uint64_t kPingBytes = 64;
  static constexpr std::uint64_t kUncounted = 10;      // first rounds of kExchange
  static constexpr Duration kBulkLead{1'500'000'000};  // bulk runs for so long before control messages
  static constexpr Duration kPingPause{20'000'000};    // between an answer and the next one, at least
  static constexpr std::uint64_t kBulkUnderWay = 2;    // messages queued beside control

  // `now` is when the links are being opened.
  LinkTrials(net::Links& links, Options options, Instant now);

  void on(const net::LinkEvent& event, Instant now);
  void tick(Instant now);
  // When tick() has something to do next.
  [[nodiscard]] Instant next_wakeup() const;

  // Whether this node has its figures, and knows that no other node waits for it.
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // The times of the trials in which this node measures. Node 1 measures in
  // all, the other nodes in kExchange.
  [[nodiscard]] const std::vector<LinkTrialTimes>& times() const { return times_; }

 private:
  // The channels of messages. Messages to and from the leader carry a number or the plan as text.
  enum Channel : std::uint32_t { kReady = 1, kBegin, kPing, kPong, kBulk, kGot, kRound, kEnded, kOver };

  struct Peer {
    bool up = false;
    bool ready = false;              // at node 1: it has all of its links
    bool over = false;               // at node 1: it has its figures
    std::uint64_t ended = 0;         // at node 1: trials that it has ended
    std::uint64_t rounds = 0;        // messages of kExchange that came
    std::optional<Error> unreached;  // why the last attempt failed
  };

  [[nodiscard]] bool leads() const { return options_.self == NodeId{1}; }
  [[nodiscard]] bool all(bool Peer::* member) const;
  [[nodiscard]] LinkTrial trial() const { return options_.plan.trials.at(begun_ - 1); }
  [[nodiscard]] std::uint64_t moved() const;

  struct Text {
    Channel channel;
    std::string body = {};
    std::uint64_t payload = 0;
  };
  std::optional<net::Ticket> send(NodeId to, host::Lane lane, Text text, Instant now);
  void tell_all(Channel channel, const std::string& body, Instant now);
  void on_message(NodeId from, const net::Message& message, Instant now);
  void on_leaders(Channel channel, NodeId from, const std::string& body, Instant now);
  void ended_link(const net::LinkEnded& event);
  void check_ready(Instant now);
  void begin_trial(Instant now);
  void end_trial(Instant now);
  void check_ended(Instant now);
  void finish(Instant now);
  void start_transfer(Instant now);
  void on_got(Instant now);
  void ping(Instant now);
  void on_pong(Instant now);
  void start_round(Instant now);
  void check_round(Instant now);
  void stop_bulk(Instant now);
  void fail_for_patience();
  [[nodiscard]] Duration cpu() const { return options_.cpu ? options_.cpu() : Duration{}; }

  net::Links& links_;
  const Options options_;
  const Slice zeros_;  // all payloads are cut from it
  std::map<NodeId, Peer> peers_;
  std::vector<LinkTrialTimes> times_;
  std::optional<Error> failure_;
  bool over_ = false;
  bool told_ready_ = false;
  bool leaving_ = false;     // at other nodes than 1: the last word is on its way
  std::uint64_t begun_ = 0;  // trials
  bool in_trial_ = false;
  Instant since_;  // the transfer or the round that is under way began
  Instant ping_since_;
  Instant trial_since_;
  Duration cpu_since_;
  std::uint64_t round_ = 0;
  std::deque<net::Ticket> bulk_;  // beside control, not answered
  bool stopping_ = false;         // no more bulk beside control is sent
  std::uint64_t acknowledged_since_ = 0;
  std::optional<Instant> next_ping_;
  // When something moved last, and the sum of all counters then.
  Instant progress_;
  std::uint64_t moved_ = 0;
  Instant looked_;
};

}  // namespace gossamer::commands
