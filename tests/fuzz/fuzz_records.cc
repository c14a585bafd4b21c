// SPDX-License-Identifier: Apache-2.0
//
// A coordinator's store whose entries the input chooses, in bytes or half right. A coordinator that cannot
// lead from them gives an error that names an entry, or says that run or configuration are others. A
// coordinator that can leads: a node begins, serves and comes to rest with the store's members, and the run
// is told to end.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "cluster/control/control_message.h"
#include "cluster/control/coordinator.h"
#include "nobody.h"

namespace {

using namespace gossamer;
using namespace gossamer::cluster;
using fuzz::Choices;

constexpr std::uint64_t kBatch = 12;
constexpr std::size_t kMostEntries = 40;

FencedIncarnations fenced(Choices& choices) {
  std::vector<FencedIncarnations::Run> runs;
  for (std::size_t i = choices.below(3); i > 0; --i) {
    const std::uint64_t first = choices.number();
    runs.push_back({Incarnation(first), Incarnation(std::max(first, choices.number()))});
  }
  return FencedIncarnations(runs);
}

host::Change lead(Choices& choices) {
  membership::Lead lead;
  lead.set_run("run");
  lead.set_batch(kBatch);
  lead.set_tracks(2);
  lead.set_incarnation(choices.number());
  lead.set_next_node(choices.flip() ? 100 : choices.number());
  lead.set_next_incarnation(choices.flip() ? 100 : choices.number());
  return put_lead(lead);
}
host::Change member(Choices& choices) {
  membership::MemberRecord record;
  record.set_node(choices.number());
  record.set_incarnation(choices.number());
  record.set_state(static_cast<membership::State>(choices.below(4)));
  record.set_memory_bytes(choices.number());
  record.set_cores(static_cast<std::uint32_t>(choices.number()));
  return put_member(record);
}
host::Change installed(Choices& choices) {
  membership::Installed installed;
  installed.set_epoch(choices.number());
  for (std::size_t i = choices.below(3); i > 0; --i) {
    membership::Installed::Speed& speed = *installed.add_speeds();
    speed.set_node(choices.number());
    speed.set_speed(choices.real());
  }
  return put_installed(installed);
}
host::Change lease(Choices& choices) {
  const std::uint64_t begin = choices.number();
  const std::int64_t duration = choices.flip() ? 1'000'000'000 : static_cast<std::int64_t>(choices.number());
  return put_lease({{LeaseSpace(choices.below(2)), begin, choices.number()},
                    Incarnation(choices.number()),
                    Duration{duration}});
}
host::Change claim(Choices& choices) {
  const std::uint64_t step = choices.number();
  const std::uint64_t begin =
      choices.below(4) == 0 ? choices.number() : step * kBatch + choices.below(kBatch);
  return put_claim({TrackId(choices.below(3)),
                    StepNumber(step),
                    {SampleId(begin), SampleId(begin + choices.below(4))},
                    Incarnation(choices.number())});
}

host::Change entry(Choices& choices) {
  static constexpr const char* kKeys[] = {"lead",
                                          "epoch",
                                          "installed",
                                          "fenced",
                                          "committed",
                                          "stopping",
                                          "members/00000000000000000005",
                                          "holdings/000000"};
  switch (choices.below(11)) {
    case 0:
      return {choices.flip() ? choices.text(20) : kKeys[choices.below(std::size(kKeys))], choices.text()};
    case 1: return put_epoch(Epoch(choices.number()), fenced(choices));
    case 2: return installed(choices);
    case 3: return put_fenced(fenced(choices));
    case 4: return lease(choices);
    case 5: return claim(choices);
    case 6: return put_commit({TrackId(choices.below(3)), StepNumber(choices.number())});
    case 7:
      return put_mark(
          {TrackId(choices.below(3)), Incarnation(choices.number()), StepNumber(choices.number())});
    case 8: return choices.flip() ? put_committed(StepNumber(choices.number())) : put_stopping({});
    case 9: {
      const HoldingMap one{{placement::ThingId(choices.number()), NodeId(choices.number())}};
      return put_holdings({}, one).front();
    }
    default: return member(choices);
  }
}

// Carries out the changes that the coordinator wants written.
void write(Coordinator& coordinator, Instant now) {
  while (auto changes = coordinator.next_commit()) {
    CHECK(host::check_limits(*changes).ok());
    coordinator.committed(now);
  }
}
void say(Coordinator& coordinator, net::PeerId from, const membership::ToCoordinator& said, Instant now) {
  coordinator.on(net::Arrived{.from = from, .message = pack(said), .receipt = {}}, now);
  write(coordinator, now);
}

void lives(Coordinator& coordinator) {
  const Instant now;
  write(coordinator, now);
  std::vector<net::PeerId> all;
  for (const MemberFacts& one : coordinator.members()) all.push_back(peer_of(*one.record));
  membership::BeginAsk ask;
  ask.set_run("run");
  coordinator.begin(
      NodeId(0), ask.SerializeAsString(),
      [&](const Result<std::string>& answer) {
        membership::BeginAnswer begun;
        if (answer.ok() && begun.ParseFromString(*answer))
          all.push_back({NodeId(begun.node()), Incarnation(begun.incarnation())});
      },
      now);
  write(coordinator, now);
  membership::ToCoordinator here;
  here.mutable_here();
  membership::ToCoordinator ready;
  ready.mutable_ready();
  membership::ToCoordinator beat;
  beat.mutable_beat()->set_speed(1);
  for (const net::PeerId peer : all) {
    for (const auto& said : {here, beat, ready}) say(coordinator, peer, said, now);
  }
  membership::ToCoordinator frozen;
  for (int round = 0; round < 3; ++round) {
    for (const net::PeerId peer : all) {
      frozen.mutable_frozen()->set_epoch(coordinator.view().epoch().value);
      say(coordinator, peer, frozen, now);
    }
  }
  Instant later = now;
  for (int i = 0; i < 20; ++i) {
    later = later + from_seconds(5);
    coordinator.tick(later);
    write(coordinator, later);
  }
  coordinator.stop("enough", later);
  write(coordinator, later);
  for (const Duration wait : {Coordinator::kStopTime, Coordinator::kLastWord}) {
    later = later + wait;
    coordinator.tick(later);
    write(coordinator, later);
  }
  CHECK(coordinator.stopped());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  std::map<std::string, std::string> store;
  if (choices.below(16) != 0) {
    const host::Change first = lead(choices);
    store[first.key] = *first.value;
  }
  for (std::size_t i = 0; choices.left() && i < kMostEntries; ++i) {
    const host::Change change = entry(choices);
    store[change.key] = *change.value;
  }
  std::vector<host::Entry> entries;
  for (const auto& [key, value] : store) entries.push_back({key, value});
  auto records = read_records(entries);
  if (!records.ok()) {
    CHECK(store.contains(records.error().where));
    return 0;
  }
  Coordinator::Options options;
  options.run = "run";
  options.generation = Generation(1);
  options.batch = kBatch;
  options.tracks = {TrackId(0), TrackId(1)};
  const auto changes = begin_lead(*records, {.run = "run", .batch = kBatch, .tracks = options.tracks});
  if (!changes.ok()) {
    const bool damaged = changes.error().kind == ErrorKind::kBadData;
    CHECK(!damaged || changes.error().where == "lead" || store.contains(changes.error().where));
    return 0;
  }
  fuzz::Nobody nobody;
  fuzz::Things workload;
  net::Links links(nobody, {.run = "run",
                            .self = {kCoordinatorNode, Incarnation(records->lead.incarnation())},
                            .program = "fuzz"});
  Coordinator coordinator(std::move(options), *std::move(records), workload, links, {});
  lives(coordinator);
  return 0;
}
