// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/rest_message.h"

#include <gossamer/pipeline.pb.h>

#include <bit>
#include <utility>

#include "base/slice.h"
#include "engines/pipeline/fleet/step_message.h"
#include "engines/pipeline/fleet/wire_values.h"

namespace gossamer::pipeline {
namespace {

constexpr int kMostStages = 4096;
constexpr int kMostMembers = 65536;
constexpr int kMostWhole = 64;

std::optional<StepRecord> record_of(const pipeline_wire::Sum& sum) {
  return read_record({Slice::of(sum.record())});
}

pipeline_wire::Sum wire_sum(const Attempt& attempt, const StepRecord& record) {
  pipeline_wire::Sum sum;
  *sum.mutable_attempt() = wire_attempt(attempt);
  sum.set_record(joined({write_record(record)}));
  return sum;
}

pipeline_wire::Layers wire_layers(const DecidedLayout::Stage& stage) {
  pipeline_wire::Layers layers;
  layers.set_first(stage.first);
  layers.set_last(stage.last);
  return layers;
}

DecidedLayout::Stage read_layers(const pipeline_wire::Layers& layers) {
  return {.first = layers.first(), .last = layers.last()};
}

}  // namespace

std::string write_report(const RestReport& report) {
  pipeline_wire::Report wire;
  wire.set_lineage(report.lineage);
  if (report.stage) wire.set_stage(*report.stage);
  wire.set_loads(report.loads);
  wire.set_applied(report.applied.value);
  if (report.last) {
    *wire.mutable_last() = wire_sum(report.last->attempt, report.last->record);
    wire.mutable_last()->set_total(std::bit_cast<std::uint64_t>(report.last->total));
    wire.mutable_last()->set_skipped(report.last->skipped);
  }
  if (report.sum) {
    *wire.mutable_sum() = wire_sum(report.sum->attempt, report.sum->record);
    wire.mutable_sum()->set_refused(report.sum->refused);
  }
  if (report.roots) {
    wire.mutable_roots()->set_step(report.roots->step.value);
    for (const auto& [stage, root] : report.roots->by_stage)
      (*wire.mutable_roots()->mutable_by_stage())[stage] = root;
  }
  for (const WholeLayers& one : report.whole) {
    pipeline_wire::Report::Whole& whole = *wire.add_whole();
    *whole.mutable_layers() = wire_layers(one.layers);
    whole.set_lineage(one.lineage);
    whole.set_step(one.step.value);
    whole.set_root(one.root);
  }
  return wire.SerializeAsString();
}

std::optional<RestReport> read_report(const std::string& bytes, Epoch installed) {
  pipeline_wire::Report wire;
  if (!wire.ParseFromString(bytes) || wire.whole_size() > kMostWhole) return std::nullopt;
  if (wire.has_roots() && wire.roots().by_stage_size() > kMostStages) return std::nullopt;
  RestReport report{.installed = installed,
                    .lineage = wire.lineage(),
                    .loads = wire.loads(),
                    .applied = StepNumber(wire.applied())};
  if (wire.has_stage()) report.stage = wire.stage();
  if (wire.has_last()) {
    const auto record = record_of(wire.last());
    if (!record) return std::nullopt;
    report.last = {.attempt = read_attempt(wire.last().attempt()),
                   .record = *record,
                   .total = std::bit_cast<double>(wire.last().total()),
                   .skipped = wire.last().skipped()};
  }
  if (wire.has_sum()) {
    const auto record = record_of(wire.sum());
    if (!record) return std::nullopt;
    report.sum = {
        .attempt = read_attempt(wire.sum().attempt()), .record = *record, .refused = wire.sum().refused()};
  }
  if (wire.has_roots()) {
    report.roots = {.step = StepNumber(wire.roots().step())};
    for (const auto& [stage, root] : wire.roots().by_stage()) report.roots->by_stage[stage] = root;
  }
  for (const pipeline_wire::Report::Whole& one : wire.whole()) {
    report.whole.push_back({.layers = read_layers(one.layers()),
                            .lineage = one.lineage(),
                            .step = StepNumber(one.step()),
                            .root = one.root()});
  }
  return report;
}

std::string write_decision(const PipelineDecision& decision) {
  const DecidedLayout& layout = decision.layout;
  pipeline_wire::Decision wire;
  wire.set_epoch(layout.epoch.value);
  wire.set_lineage(layout.lineage);
  wire.set_step(layout.step.value);
  wire.set_tries(layout.tries);
  wire.set_goes_back(layout.goes_back);
  wire.set_exact(layout.exact);
  for (const DecidedLayout::Stage& stage : layout.stages) *wire.add_stages() = wire_layers(stage);
  for (const auto& [node, stage] : layout.members) {
    pipeline_wire::Decision::Member& member = *wire.add_members();
    member.set_node(node.value);
    member.set_stage(stage);
    const auto dealt = decision.dealt.find(node);
    if (dealt != decision.dealt.end()) member.set_microbatches(dealt->second);
  }
  if (decision.apply) {
    pipeline_wire::Sum& apply = *wire.mutable_apply();
    *apply.mutable_attempt() = wire_attempt(decision.apply->attempt);
    apply.set_total(std::bit_cast<std::uint64_t>(decision.apply->total));
    apply.set_skipped(decision.apply->skipped);
  }
  return wire.SerializeAsString();
}

namespace {

// Layers follow one another, from the first one on, and no stage is empty.
bool stages_follow(const std::vector<DecidedLayout::Stage>& stages) {
  std::uint32_t next = 0;
  for (const DecidedLayout::Stage& stage : stages) {
    if (stage.first != next || stage.last <= stage.first) return false;
    next = stage.last;
  }
  return !stages.empty();
}

}  // namespace

std::optional<PipelineDecision> read_decision(const std::string& bytes) {
  pipeline_wire::Decision wire;
  if (!wire.ParseFromString(bytes) || wire.stages_size() > kMostStages || wire.members_size() > kMostMembers)
    return std::nullopt;
  PipelineDecision decision;
  DecidedLayout& layout = decision.layout;
  layout = {.epoch = Epoch(wire.epoch()),
            .lineage = wire.lineage(),
            .step = StepNumber(wire.step()),
            .tries = wire.tries(),
            .goes_back = wire.goes_back(),
            .exact = wire.exact()};
  for (const pipeline_wire::Layers& stage : wire.stages()) layout.stages.push_back(read_layers(stage));
  if (!stages_follow(layout.stages)) return std::nullopt;
  for (const pipeline_wire::Decision::Member& member : wire.members()) {
    const NodeId node(member.node());
    const bool rises = layout.members.empty() || layout.members.rbegin()->first < node;
    const bool deals = member.microbatches() == 0 || member.stage() == 0;
    if (!rises || !deals || member.stage() >= layout.stages.size()) return std::nullopt;
    layout.members[node] = member.stage();
    if (member.stage() == 0) decision.dealt[node] = member.microbatches();
  }
  if (wire.has_apply()) {
    decision.apply = {.attempt = read_attempt(wire.apply().attempt()),
                      .total = std::bit_cast<double>(wire.apply().total()),
                      .skipped = wire.apply().skipped()};
  }
  return decision;
}

InstalledStep for_member(const PipelineDecision& decision, NodeId node) {
  const auto dealt = decision.dealt.find(node);
  return {.layout = decision.layout,
          .apply = decision.apply,
          .microbatches = dealt == decision.dealt.end() ? 0 : dealt->second};
}

std::uint64_t first_microbatch(const PipelineDecision& decision, NodeId node) {
  std::uint64_t first = 0;
  for (const auto& [other, count] : decision.dealt) {
    if (other < node) first += count;
  }
  return first;
}

}  // namespace gossamer::pipeline
