// SPDX-License-Identifier: Apache-2.0
//
// A hostile member for test_hostile_member.py. It is a node of the run with a certificate of its own, from a
// token. It behaves until it may attack, and then does what its mode says for as long as its life lasts.
//
//   hostile_member TOKEN serving|joining MODE [CHANNEL control|bulk]
//
// Modes:
//   flood      sends the largest messages of all channels that it may use, whole, of bytes that are none
//   hold       begins the largest message that it may send on the channel and lane, and never ends it
//   forbidden  sends on channels and lanes that it may not use
//   grow       sends its coordinator messages that are far larger in memory than on the way
//   early      sends members messages of steps to come
//   beats      beats as fast as it can, and reads no answers
//   busy       says as much to its coordinator as it may, for 10 s
//   asks       asks for leases, claims and commits as fast as it can, and reads no answers
//   chunks     asks everybody for the run's files as fast as it can, and reads no answers
//   offers     offers its coordinator files as fast as it can
//   unread     reads nothing of what other members send, and takes no other way
//   half       opens connections to everybody, and says no word on them
//   lives      begins one life after another
//
// It prints a line for each thing that happens:
//   begun N       incarnation N
//   attacks       it does so from now on
//   done          with `hold`, `half` and `busy`: all that it can do is done
//   refused: WHY  it gets no life
//   ended: WHY    its life
// It ends with its first life, or, with `lives`, when it is killed.
#include <fmt/format.h>
#include <gossamer/chunks.pb.h>
#include <gossamer/collective.pb.h>
#include <gossamer/delivery.pb.h>
#include <gossamer/membership.pb.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "cluster/admission/token.h"
#include "cluster/chunks/chunk_messages.h"
#include "cluster/control/control_message.h"
#include "cluster/control/member_process.h"
#include "cluster/membership/word_budget.h"
#include "engines/check/check_engine.h"
#include "host/grpc/network.h"
#include "host/posix/clock.h"
#include "host/posix/disk.h"
#include "host/posix/mailbox.h"
#include "host/posix/route.h"
#include "meddler.h"
#include "net/link/channels.h"
#include "node/admission/enrolling.h"
#include "node/configured_engine.h"
#include "node/run_configuration.h"

namespace {

using namespace gossamer;
using host::Lane;

constexpr const char* kProgram = "hostile_member";
constexpr Duration kLook{2'000'000};
// What it keeps queued for one peer on a lane: enough that the line is never idle.
constexpr std::uint64_t kAhead = 4ULL << 20;
constexpr std::size_t kBurst = 2000;
constexpr std::size_t kHalfOpen = 40;  // on each port: more than one certificate may have
constexpr std::size_t kManyHalfOpen = 400;

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// Joins, opens its links, and holds nothing for ever.
class IdleEngine final : public cluster::Engine {
 public:
  explicit IdleEngine(cluster::MemberProcess& process) : process_(process) {}
  void on(const cluster::ProcessEvent& event, Instant now) override {
    const auto* const arrived = std::get_if<net::Arrived>(&event);
    if (arrived != nullptr && process_.links() != nullptr) process_.links()->consumed(arrived->receipt, now);
  }
  void tick(Instant) override {}
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return std::nullopt; }
  void drain(const std::string&, Instant) override {}
  [[nodiscard]] std::optional<Error> failure() const override { return std::nullopt; }
  [[nodiscard]] std::vector<CounterSample> counters() const override { return {}; }

 private:
  cluster::MemberProcess& process_;
};

net::Message message(std::uint32_t channel, std::string body, std::uint64_t payload = 0) {
  net::Message made{.channel = channel, .body = std::move(body), .payload = {}};
  if (payload > 0) made.payload.push_back(Slice::of(std::string(payload, '\xff')));
  return made;
}

struct Wish {
  net::Sender as = net::Sender::kServing;
  std::string mode;
  std::uint32_t channel = 0;
  Lane lane = Lane::kControl;
};

class Hostile {
 public:
  Hostile(node::Membership membership, host::Endpoint coordinator, Wish wish)
      : membership_(std::move(membership)), coordinator_(std::move(coordinator)), wish_(std::move(wish)) {
    meddler_.attach(host::make_grpc_network(
        membership_.credentials, [this](host::NetworkEvent event) { mailbox_.push(std::move(event)); }));
    begin();
  }

  void run() {
    while (!over_) {
      for (host::NetworkEvent& event : mailbox_.wait(kLook)) on(std::move(event));
      process_->tick(clock_.now());
      engine_->tick(clock_.now());
      tell();
      if (!over_ && may_attack()) attack();
    }
  }

 private:
  void begin();
  void on(host::NetworkEvent event);
  void tell();
  [[nodiscard]] bool may_attack();
  [[nodiscard]] bool reaches(NodeId node);
  [[nodiscard]] std::vector<NodeId> members();
  [[nodiscard]] std::vector<NodeId> everybody();
  void attack();

  // The row by which this node sends on the channel and lane.
  [[nodiscard]] std::optional<net::ChannelRule> row(std::uint32_t channel, Lane lane) const;
  [[nodiscard]] static bool includes(net::Lanes lanes, Lane lane) {
    return lanes == net::Lanes::kBoth || (lanes == net::Lanes::kBulk) == (lane == Lane::kBulk);
  }
  void send(NodeId to, Lane lane, net::Message what) {
    (void)process_->links()->send({to, {}}, lane, std::move(what), clock_.now());
  }
  [[nodiscard]] bool has_room(NodeId to, Lane lane, std::uint64_t most = kAhead) {
    return process_->links()->statistics(to).lane(lane).queued_bytes < most;
  }
  void to_coordinator(const membership::ToCoordinator& said) {
    send(cluster::kCoordinatorNode, Lane::kControl, cluster::pack(said));
  }

  // Says so once.
  void done() {
    if (!std::exchange(done_, true)) say("done");
  }

  void flood();
  void hold();
  void forbidden();
  void grow();
  void early();
  void beats();
  void busy();
  void asks();
  void chunks();
  void offers();
  void half();

  host::PosixDisk disk_;
  const host::PosixClock clock_;
  const node::Membership membership_;
  const host::Endpoint coordinator_;
  const Wish wish_;
  host::Mailbox<host::NetworkEvent> mailbox_;
  host::Meddler meddler_;
  std::unique_ptr<cluster::MemberProcess> process_;
  std::unique_ptr<cluster::Engine> engine_;
  std::vector<Sha256> files_;
  bool attacks_ = false;
  Instant attacks_since_;
  bool over_ = false;
  bool done_ = false;
  std::uint64_t number_ = 0;
  std::map<host::ConnectionId, std::pair<host::Endpoint, Lane>> half_open_;
  std::size_t closed_half_ = 0;
};

void Hostile::begin() {
  cluster::MemberProcess::Options options;
  options.run = membership_.run;
  options.name = "hostile";
  options.coordinators = {coordinator_};
  options.machine = host::network_stack();
  options.memory_bytes = 1ULL << 30;
  options.program = kProgram;
  options.seed = membership_.node.value;
  // Else it would take the way through the relay, and nobody would notice.
  if (wish_.mode == "unread") options.defect = cluster::Defect::kNoOtherWay;
  engine_.reset();
  process_ = std::make_unique<cluster::MemberProcess>(std::move(options), meddler_, clock_.now());
  if (wish_.as == net::Sender::kJoining) {
    engine_ = std::make_unique<IdleEngine>(*process_);
    return;
  }
  engine_ = std::make_unique<node::ConfiguredEngine>(
      disk_, *process_,
      node::ConfiguredEngine::Options{.kinds = {{.name = "check",
                                                 .make =
                                                     [this](const node::Supplied&) {
                                                       return std::make_unique<check::CheckEngine>(
                                                           *process_,
                                                           check::CheckEngine::Options{.clock = &clock_});
                                                     }}},
                                      .program = kProgram});
}

void Hostile::on(host::NetworkEvent event) {
  meddler_.note(event);
  if (!meddler_.hears(event)) return;
  if (const auto* const closed = std::get_if<host::Closed>(&event))
    closed_half_ += half_open_.erase(closed->connection);
  process_->on(std::move(event), clock_.now());
}

void Hostile::tell() {
  bool again = false;
  for (auto events = process_->take_events(); !events.empty(); events = process_->take_events()) {
    for (const cluster::ProcessEvent& event : events) {
      engine_->on(event, clock_.now());
      if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) {
        say(fmt::format("begun {}", begun->self.incarnation.value));
        const auto run = node::read_run_configuration(begun->configuration);
        files_.clear();
        if (!run.ok() || !run->supply) continue;
        for (const node::Supply::File& file : run->supply->files) files_.push_back(file.manifest);
      } else if (const auto* const ended = std::get_if<cluster::LifeEnded>(&event)) {
        say("ended: " + printable(ended->error ? ended->error->message() : "by itself"));
        again = true;
      } else if (const auto* const failed = std::get_if<cluster::BeginFailed>(&event)) {
        say("refused: " + printable(failed->error.message()));
      }
    }
  }
  if (!again) return;
  if (wish_.mode == "lives") return begin();
  over_ = true;
}

bool Hostile::reaches(NodeId node) {
  const net::LinkStatistics link = process_->links()->statistics(node);
  return std::ranges::all_of(link.lanes, &net::LaneStatistics::up);
}

// The other members of the view.
std::vector<NodeId> Hostile::members() {
  std::vector<NodeId> nodes;
  for (const auto& [node, record] : process_->member()->view().members()) {
    if (node != membership_.node) nodes.push_back(node);
  }
  return nodes;
}

std::vector<NodeId> Hostile::everybody() {
  std::vector<NodeId> nodes = members();
  nodes.push_back(cluster::kCoordinatorNode);
  return nodes;
}

bool Hostile::may_attack() {
  cluster::Member* const member = process_->member();
  if (member == nullptr || member->ended()) return false;
  if (attacks_) return true;
  if (members().empty() || !std::ranges::all_of(everybody(), [this](NodeId one) { return reaches(one); }))
    return false;
  // In the view, and with what it holds there.
  const bool serves = member->serving() && member->installed().epoch() == member->view().epoch().value;
  return serves || wish_.as == net::Sender::kJoining;
}

void Hostile::attack() {
  static const std::map<std::string, void (Hostile::*)()> kModes{
      {"flood", &Hostile::flood}, {"hold", &Hostile::hold},     {"forbidden", &Hostile::forbidden},
      {"grow", &Hostile::grow},   {"early", &Hostile::early},   {"beats", &Hostile::beats},
      {"asks", &Hostile::asks},   {"chunks", &Hostile::chunks}, {"offers", &Hostile::offers},
      {"half", &Hostile::half},   {"busy", &Hostile::busy}};
  const bool first = !std::exchange(attacks_, true);
  if (first) {
    say("attacks");
    attacks_since_ = clock_.now();
    const auto of_members = [this](host::ConnectionId id, Lane) { return !meddler_.is_first(id); };
    const auto of_all = [](host::ConnectionId, Lane) { return true; };
    if (wish_.mode == "unread") meddler_.be_deaf(of_members);
    if (wish_.mode == "beats" || wish_.mode == "asks" || wish_.mode == "chunks") meddler_.be_deaf(of_all);
  }
  if (wish_.mode == "lives") {
    attacks_ = false;
    return process_->begin_anew({.what = "another life"}, clock_.now());
  }
  if (const auto mode = kModes.find(wish_.mode); mode != kModes.end()) (this->*mode->second)();
}

std::optional<net::ChannelRule> Hostile::row(std::uint32_t channel, Lane lane) const {
  for (const net::ChannelRule& one : net::channel_rules()) {
    if (one.channel == channel && one.sender == wish_.as && includes(one.lanes, lane)) return one;
  }
  return std::nullopt;
}

void Hostile::flood() {
  constexpr std::uint64_t kMost = 2ULL << 20;
  for (const NodeId to : everybody()) {
    for (const auto& [channel, name] : net::kChannelNames) {
      for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
        const auto rule = row(channel, lane);
        if (!rule || !has_room(to, lane)) continue;
        const std::uint64_t bytes = std::min(rule->most_bytes, kMost);
        send(to, lane, message(channel, "\xff", bytes - 1));
      }
    }
  }
}

// All but the last piece leaves.
void Hostile::hold() {
  constexpr std::uint64_t kMost = 512ULL << 20;
  if (number_++ > 0) {
    if (meddler_.has_kept_back(wish_.lane)) done();
    return;
  }
  const auto rule = row(wish_.channel, wish_.lane);
  if (!rule) return say("no row");
  const std::uint64_t payload = std::min(rule->most_bytes - 1, kMost);
  constexpr std::uint64_t kPiece = net::LaneStream::kPieceBytes;
  const std::uint64_t frames = payload / kPiece * (kPiece + 64);
  meddler_.keep_back_after(wish_.lane, frames > 4 * kPiece ? frames - 4 * kPiece : kPiece);
  const net::Message one = message(wish_.channel, "\xff", payload);
  for (const NodeId to : everybody()) send(to, wish_.lane, one);
}

void Hostile::forbidden() {
  for (const NodeId to : everybody()) {
    for (std::uint32_t channel = 0; channel <= net::kChannelNames.size() + 1; ++channel) {
      for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
        if (!row(channel, lane) && has_room(to, lane)) send(to, lane, message(channel, "x", 1ULL << 20));
      }
    }
  }
}

// Two bytes on the way are an object in memory.
void Hostile::grow() {
  if (!has_room(cluster::kCoordinatorNode, Lane::kControl)) return;
  const auto rule = row(net::kControlChannel, Lane::kControl);
  membership::ToCoordinator said;
  said.mutable_frozen()->set_epoch(1);
  for (std::uint64_t bytes = 64; bytes < rule->most_bytes; bytes += 2) said.mutable_frozen()->add_progress();
  to_coordinator(said);
}

void Hostile::early() {
  const Epoch epoch = process_->member()->view().epoch();
  for (const NodeId to : members()) {
    while (has_room(to, Lane::kBulk)) {
      wire::Collective body;
      body.set_view(epoch.value + number_ % 2);
      body.set_id(1'000'000 + ++number_);
      send(to, Lane::kBulk, message(net::kCheckChannel, body.SerializeAsString(), 1ULL << 20));
    }
  }
}

// Nothing is acknowledged, as it reads nothing. So there is room for more words than the budget has, even
// where the coordinator takes ten seconds to read them.
void Hostile::beats() {
  using Budget = cluster::WordBudget;
  constexpr auto kWords = static_cast<std::uint64_t>(Budget::kAtOnce + 10 * Budget::kPerSecond);
  if (!has_room(cluster::kCoordinatorNode, Lane::kControl, kWords * net::kMessageCost)) return;
  membership::ToCoordinator said;
  said.mutable_beat()->set_epoch(process_->member()->view().epoch().value);
  for (std::size_t i = 0; i < kBurst; ++i) to_coordinator(said);
}

// Nine tenths of its budget, in words that take their reader's time: each names nodes that nobody looks for.
void Hostile::busy() {
  const double seconds = (clock_.now() - attacks_since_).seconds();
  if (seconds > 10) return done();
  constexpr double kWords = cluster::WordBudget::kPerSecond;
  membership::ToCoordinator said;
  said.mutable_beat()->set_epoch(process_->member()->view().epoch().value);
  for (int i = 0; i < static_cast<int>(cluster::WordBudget::kBytesPerSecond / kWords) - 300; ++i)
    said.mutable_beat()->add_unreachable(static_cast<std::uint64_t>(100 + i % 28));
  for (; static_cast<double>(number_) < 0.9 * kWords * seconds; ++number_) to_coordinator(said);
}

void Hostile::asks() {
  if (!has_room(cluster::kCoordinatorNode, Lane::kControl)) return;
  for (std::size_t i = 0; i < kBurst; ++i) {
    membership::ToCoordinator said;
    if (i % 3 == 0) {
      said.mutable_lease()->set_number(++number_);
      said.mutable_lease()->mutable_keys()->set_begin(number_);
      said.mutable_lease()->mutable_keys()->set_end(number_ + 1);
      said.mutable_lease()->set_duration_ns(1'000'000'000);
    } else if (i % 3 == 1) {
      said.mutable_claim()->set_number(++number_);
      said.mutable_claim()->set_begin(number_);
      said.mutable_claim()->set_end(number_ + 1);
    } else {
      said.mutable_commit()->set_number(++number_);
    }
    to_coordinator(said);
  }
}

void Hostile::chunks() {
  for (const NodeId to : everybody()) {
    if (!has_room(to, Lane::kBulk)) continue;
    for (std::size_t i = 0; i < kBurst; ++i) {
      for (const Sha256& file : files_) {
        wire::Chunks ask = cluster::chunks_body(file, i % 2 == 0 ? wire::Chunks::ASK : wire::Chunks::WANT);
        ask.set_with_manifest(i % 2 == 0);
        send(to, Lane::kBulk, message(net::kChunkRequests, ask.SerializeAsString()));
      }
    }
  }
}

void Hostile::offers() {
  if (!has_room(cluster::kCoordinatorNode, Lane::kControl)) return;
  for (std::size_t i = 0; i < kBurst; ++i) {
    wire::Delivery offer;
    offer.set_kind(wire::Delivery::OFFER);
    ++number_;
    offer.set_name(fmt::format("{}-step-1.{}.part", number_, number_));
    offer.set_manifest(std::string(32, static_cast<char>(number_)));
    offer.set_bytes(1ULL << 30);
    send(cluster::kCoordinatorNode, Lane::kControl, message(net::kDeliveries, offer.SerializeAsString()));
  }
}

// What closes is opened again.
void Hostile::half() {
  for (const auto& port : meddler_.dialed()) {
    const auto open = static_cast<std::size_t>(
        std::ranges::count_if(half_open_, [&](const auto& one) { return one.second == port; }));
    if (open < kHalfOpen) half_open_.emplace(meddler_.real().connect(port.first, port.second), port);
  }
  if (closed_half_ >= kManyHalfOpen) done();
}

std::optional<Wish> read_wish(std::span<char*> words) {
  if (words.size() < 2) return std::nullopt;
  const std::string as = words[0];
  if (as != "serving" && as != "joining") return std::nullopt;
  Wish wish{.as = as == "serving" ? net::Sender::kServing : net::Sender::kJoining, .mode = words[1]};
  if (words.size() == 4) {
    wish.channel = static_cast<std::uint32_t>(std::stoul(words[2]));
    wish.lane = std::string(words[3]) == "bulk" ? Lane::kBulk : Lane::kControl;
  }
  return wish;
}

}  // namespace

int main(int count, char** words) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  const std::span<char*> arguments(words, static_cast<std::size_t>(count));
  const auto wish = count > 3 ? read_wish(arguments.subspan(2)) : std::nullopt;
  const auto token = cluster::decode_token(count > 1 ? arguments[1] : "");
  if (!wish || !token.ok()) {
    say("usage: hostile_member TOKEN serving|joining MODE [CHANNEL control|bulk]");
    return 2;
  }
  auto membership = node::enroll({.token = *token,
                                  .wire = node::wire_range(),
                                  .program = kProgram,
                                  .now_seconds = host::PosixClock().wall_seconds()});
  if (!membership.ok()) {
    say(membership.error().message());
    return 1;
  }
  Hostile(*std::move(membership), token->at, *wish).run();
  return 0;
}
