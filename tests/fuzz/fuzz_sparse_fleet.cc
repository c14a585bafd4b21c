// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as decisions of a sparse run's coordinator and as reports of its members. Their readers do not
// crash. An accepted layout is one for which a plan can be made. Of readable reports some contradict the
// others; the decision on the rest is a layout again, or the end of the run. It asks nobody for a log from
// before the snapshot that they know. Any bytes also as lists of labels: accepted lists can be ranked, and
// have only labels of the sender's rows.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"
#include "engines/sparse/fleet/step/label_lists.h"

namespace {

using namespace gossamer;
using namespace gossamer::sparse_engine;

FleetShape shape() {
  return {.network = {.features = 60, .labels = 150, .hidden = 116, .dense = {96, 64}}, .shard_shift = 4};
}

void fill(fuzz::Choices& choices, std::size_t block, std::size_t blocks, sparse_fleet::Run& run) {
  const std::size_t begin = choices.below(blocks + 1);
  run.set_begin(begin * block);
  run.set_end((begin + choices.below(blocks + 1 - begin + 1)) * block);
}

// Mostly a report that a member can have sent.
std::string report_of(fuzz::Choices& choices) {
  if (choices.below(8) == 0) return choices.text(80);
  sparse_fleet::Report report;
  report.set_applied(choices.below(8) == 0 ? choices.number() : 7 + choices.below(2));
  if (choices.flip()) {
    fill(choices, 16, 8, *report.mutable_part()->mutable_columns());
    fill(choices, 32, 3, *report.mutable_part()->add_units());
    fill(choices, 32, 2, *report.mutable_part()->add_units());
    for (std::size_t i = choices.below(12); i > 0; --i) report.mutable_part()->add_shards(choices.below(11));
  }
  for (std::size_t i = choices.below(3); i > 0; --i) {
    sparse_fleet::Copies& copies = *report.add_copies();
    copies.set_step(choices.below(8) == 0 ? choices.number() : choices.below(8));
    for (std::size_t k = choices.below(12); k > 0; --k)
      copies.add_pieces(choices.below(5) << 32 | choices.below(11));
  }
  return report.SerializeAsString();
}

void decide(fuzz::Choices& choices) {
  FleetWorkload workload(shape(), {.copies = 1 + choices.below(3), .steps = 9});
  const cluster::View view;
  const cluster::HoldingMap before;
  cluster::HoldingMap after;
  std::map<NodeId, membership::Frozen> reports;
  const std::size_t members = 1 + choices.below(4);
  for (std::size_t i = 0; i < members; ++i) {
    const std::string report = report_of(choices);
    if (!workload.readable(report)) continue;
    reports[NodeId(2 + i)].set_report(report);
    reports[NodeId(2 + i)].set_installed(choices.below(8) == 0 ? 0 : 3);
  }
  for (auto odd = workload.contradicting(reports); !odd.empty(); odd = workload.contradicting(reports)) {
    for (const NodeId node : odd) CHECK(reports.erase(node) == 1, node.value);
  }
  if (reports.empty()) return;
  for (std::size_t shard = 0; shard < shape().shards(); ++shard) {
    auto node = reports.begin();
    std::advance(node, choices.below(reports.size()));
    after[placement::ThingId(shard)] = node->first;
  }
  const cluster::Decision decision = workload.decide(
      {.view = view, .reports = reports, .before = before, .after = after, .committed = StepNumber()});
  if (decision.failure) return;
  const auto layout = read_layout(decision.bytes, shape());
  CHECK(layout.ok());
  for (const auto& [node, frozen] : reports) {
    sparse_fleet::Report report;
    CHECK(report.ParseFromString(frozen.report()));
    const bool knows = report.has_part() && !report.copies().empty();
    CHECK(!knows || report.copies(0).step() <= layout->base.value, node.value);
  }
}

void take_lists(const std::string& bytes) {
  constexpr std::size_t kLength = 3;
  sparse::HeldRows rows(150, 4);
  rows.drop(2);
  std::vector<std::vector<Scored>> lists(bytes.size() / list_bytes(1, kLength));
  const Slice taken = Slice::of(bytes).part(0, list_bytes(lists.size(), kLength));
  if (!add_lists({taken}, kLength, rows, sparse::RowOrder(), lists).ok()) return;
  for (std::vector<Scored>& list : lists) {
    rank_list(kLength, list);
    CHECK(std::ranges::is_sorted(list, ranks_before));
    for (const Scored& one : list) CHECK(one.id < 150 && rows.contains(one.id), one.id);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto layout = read_layout(bytes, shape()); layout.ok()) {
    const RecoveryPlan plan = plan_recovery(*layout, shape());
    CHECK(plan.behind.size() == layout->members.size());
  }
  take_lists(bytes);
  fuzz::Choices choices(data, size);
  decide(choices);
  return 0;
}
