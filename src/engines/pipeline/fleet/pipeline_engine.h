// SPDX-License-Identifier: Apache-2.0
//
// PipelineEngine: a member's side of a pipeline run. Its steps are those of StepMember, and microbatches go
// as MicrobatchFlow says (docs/protocols/pipeline-step.md). Here both meet the links, the exchanges and the
// thread that computes.
//
// Nothing of a tensor is read, copied or summed on the loop thread. A piece of Work is a layer of one
// microbatch, a contribution, a sum, or some blocks of an update. Work that was begun for an attempt which is
// over is let go: its result is thrown away. An update always ends.
//
// The loss or silence of a peer is no failure, because the view will change. Thread rule: the loop thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "cluster/control/member_process.h"
#include "engines/pipeline/fleet/pipeline_exchanges.h"
#include "engines/pipeline/fleet/pipeline_job.h"
#include "engines/pipeline/fleet/pipeline_work.h"
#include "engines/pipeline/fleet/rest_message.h"
#include "engines/pipeline/fleet/stage_bench.h"
#include "engines/pipeline/fleet/step_message.h"
#include "engines/pipeline/step/microbatch_flow.h"
#include "engines/pipeline/step/step_member.h"
#include "engines/run/member_engine.h"
#include "engines/run/sent_bytes.h"

namespace gossamer::pipeline {

// Counters of this process, over all its lives.
struct PipelineCounters {
  std::uint64_t steps = 0;
  std::uint64_t microbatches = 0;
  std::uint64_t again = 0;
  std::uint64_t boundary_bytes = 0;
  template <class Visitor>
  void describe(Visitor&& v) const {
    v("gossamer_pipeline_steps_total", "steps", "Steps applied.", steps);
    v("gossamer_pipeline_microbatches_total", "microbatches", "Whose products were added.", microbatches);
    v("gossamer_pipeline_attempts_again_total", "attempts", "Of a step that had begun before.", again);
    v("gossamer_pipeline_boundary_bytes_total", "bytes", "Handed to links between stages.", boundary_bytes);
  }
};

class PipelineEngine final : public engine::MemberEngine {
 public:
  // Makes the job that the run's configuration describes. Called in Work.
  using MakeJob = MakePipelineJob;
  // A step that this member has applied, by the records of all.
  struct Applied {
    Epoch epoch;
    StepNumber step;
    double loss = 0;  // mean over the tokens of the step
    double norm = 0;  // of the mean gradient, before it is clipped
    engine::SentBytes sent = {};
  };
  // All members may mark it: how far the run is.
  static constexpr cluster::TrackId kTrack{0};

  // The process outlives the engine.
  PipelineEngine(cluster::MemberProcess& process, MakeJob make_job, StepDefect defect = StepDefect::kNone)
      : MemberEngine(process), make_job_(std::move(make_job)), defect_(defect) {}

  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return leaves_by_; }
  [[nodiscard]] Work take_work() override;
  void worked(Instant now) override;
  [[nodiscard]] Work take_side_work() override;
  void side_worked(Instant now) override;
  [[nodiscard]] std::optional<cluster::Awaited> awaits() const override;
  [[nodiscard]] std::vector<CounterSample> counters() const override { return read(counters_); }

  [[nodiscard]] const PipelineCounters& pipeline_counters() const { return counters_; }
  // Null between two lives, and before the first layout.
  [[nodiscard]] const StepMember* step_member() const { return life_ ? &life_->step : nullptr; }
  // The stage that this life holds, while nothing is computed; else null.
  [[nodiscard]] StageBench* bench() const;
  // Numbers of tensors that calls on the loop thread have touched.
  [[nodiscard]] std::uint64_t numbers_touched() const {
    return life_ ? life_->exchanges.numbers_touched() : 0;
  }
  // Called after each step that is applied.
  void tell_applied(std::function<void(const Applied&)> tell) { on_applied_ = std::move(tell); }

 private:
  using Task = PipelineTask;
  using TaskKind = PipelineTask::Kind;

  // State that ends with an incarnation.
  struct Life {
    StepMember step;
    PipelineExchanges exchanges;
    PipelineWorkbenchRef bench = std::make_shared<PipelineWorkbench>();
    std::shared_ptr<const PipelineJob> job = {};
    std::optional<PipelineDecision> decision = {};
    std::map<NodeId, net::PeerId> peers = {};  // of the layout
    std::optional<MicrobatchFlow> flow = {};
    bool grants = false;  // accumulators are clear: microbatches may come
    std::deque<Task> wanted = {};
    std::map<std::uint64_t, Slices> came_forward = {}, came_backward = {};
    std::map<std::uint64_t, Slices> to_forward = {}, to_backward = {};
    std::map<net::PeerId, std::pair<Attempt, std::uint64_t>> early_credits = {};
    std::optional<Attempt> begun = {};     // last
    bool delivers = false;                 // the state after the last step, or has
    std::optional<Applied> applying = {};  // by the records
  };

  void begin(const cluster::LifeBegun& event, Instant now) override;
  void end() override { life_.reset(); }
  void freeze(Instant now) override;
  void install(Instant now) override;
  void lost(net::PeerId peer, Instant now) override;
  void arrived(const net::Arrived& event, Instant now) override;
  void stop(const std::string& reason, Instant now) override;

  void prepared(Instant now);
  void carry_out(const StepActions& actions, Instant now);
  void carry_out(PipelineExchanges::Events events, Instant now);
  void stop_all();
  void want(Task task) { life_->wanted.push_back(std::move(task)); }
  void begin_attempt(const Attempt& attempt);
  void deliver_at_end();
  void want_stage(std::uint32_t stage, Instant now);
  void leave_if_kept(Instant now);
  [[nodiscard]] Task task_of(const MicrobatchFlow::Job& job);
  void done(const Task& task, PipelineWorkbench& bench, Instant now);
  void microbatch_done(const Task& task, PipelineWorkbench& bench, Instant now);
  void gathered(const PipelineExchanges::Gathered& all, Instant now);
  void updated(PipelineWorkbench& bench, Instant now);
  void on_step_message(const net::Arrived& event, Instant now);
  void judge(const StepMessage& message, const net::Arrived& event, Instant now);
  void flow_on(Instant now);
  void say_all_back(Instant now);
  void send(NodeId to, host::Lane lane, net::Message message, Instant now);
  [[nodiscard]] bool is_of_layout(net::PeerId peer) const;
  void blame(net::PeerId peer, std::string_view rule, Instant now);

  const MakeJob make_job_;
  const StepDefect defect_;
  PipelineCounters counters_;
  std::unique_ptr<Life> life_;
  // The Work that is done now, and where.
  std::optional<Task> in_hand_;
  PipelineWorkbenchRef in_hand_at_;
  // The run ends: all save the same state with the next step, and then leave; at the latest by then.
  std::optional<std::string> stops_;
  std::optional<Instant> leaves_by_;
  bool kept_at_end_ = false;
  std::function<void(const Applied&)> on_applied_;
};

}  // namespace gossamer::pipeline
