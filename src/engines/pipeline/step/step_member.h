// SPDX-License-Identifier: Apache-2.0
//
// StepMember: the states of one member in its steps. They are one table of transitions, in
// step_member_table.cc, which docs/protocols/pipeline-step.md shows ("States").
//
// A pure state machine: its driver owns tensors, links, exchanges and Work. The driver tells what happened,
// and does what the returned actions say, in the order of their fields. A message of an earlier attempt is
// dropped here, one of a later attempt is kept until this member is there. A StepMember is a plain value: it
// can be copied and compared.
//
// Thread rule: one owner. Cost: linear in the members.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "engines/pipeline/step/layout.h"
#include "engines/pipeline/step/open_step.h"
#include "engines/pipeline/step/record.h"
#include "engines/pipeline/step/step_defect.h"

namespace gossamer::pipeline {

enum class StepPhase : std::uint8_t {
  kResting,    // it has reported, or will once a change is known
  kLoading,    // it fetches the stage that the layout gives it
  kComputing,  // microbatches go through it
  kSumming,    // it has joined SUM
  kGathering,  // it has joined RECORDS
  kApplying,   // its update is being written
  kLeft,
};
[[nodiscard]] const char* phase_name(StepPhase phase);

// What happens to the phases; step_member_table.cc has it in words.
enum class StepEvent : std::uint8_t {
  kBegins,
  kApplies,
  kLoads,
  kNoPart,
  kContradicted,
  kLoaded,
  kAllAdded,
  kSummed,
  kFit,
  kMisfit,
  kWritten,
  kWrittenLoads,
  kWrittenRests,
  kHard,
  kSoft,
  kFails,
};

// The decision, as Install tells it to one member.
struct InstalledStep {
  struct Apply {
    Attempt attempt;
    double total = 0;      // squared norm of all stages
    bool skipped = false;  // the step is counted, and weights stay
    auto operator<=>(const Apply&) const = default;
  };
  DecidedLayout layout;
  std::optional<Apply> apply = {};  // before the layout's step begins
  std::uint32_t microbatches = 0;   // of a step, dealt to this member
};

// The gradient of the own stage, as the driver has it from the exchange.
struct StageSum {
  std::uint64_t hash = 0;
  double squared_norm = 0;
  double loss = 0;
  std::uint64_t tokens = 0;  // that this member has added
  std::uint8_t not_finite = 0;
};

// What is to be done, in this order.
struct StepActions {
  bool leave = false;  // the run; what this member has of the step may be a half
  bool stop = false;   // drop what is queued, and leave the exchanges of the view
  bool save = false;   // keep this state: a record wished so
  // Clear sums and accumulators once no Work of an earlier attempt runs; grant credits; in the first stage
  // begin microbatches.
  std::optional<Attempt> begin = {};
  bool all_back = false;                   // say AllBack of `begin`, or of the attempt under way, to all
  std::optional<Attempt> sum = {};         // join SUM
  std::optional<StepRecord> records = {};  // join RECORDS with it
  std::optional<InstalledStep::Apply> update = {};  // write the update of the own stage, with this norm
  std::optional<std::uint32_t> load = {};           // fetch this stage as of next_step(), keep the old one
  std::optional<Epoch> report = {};                 // say report() for this change
  bool operator==(const StepActions&) const = default;
};

class StepMember {
 public:
  struct Options {
    NodeId self;
    std::optional<StepNumber> end = {};  // the first step that the run does not take
    StepDefect defect = StepDefect::kNone;
    auto operator<=>(const Options&) const = default;
  };
  explicit StepMember(const Options& options) : options_(options) {}

  // The coordinator has decided. Ignored unless this member rests for a change up to that epoch.
  [[nodiscard]] StepActions install(const InstalledStep& decision);
  enum class Change : std::uint8_t { kHard, kCanWait };
  [[nodiscard]] StepActions change(Epoch epoch, Change change);
  // A link with a member of the view is lost, or an exchange has failed.
  [[nodiscard]] StepActions lost();

  // A microbatch came from the stage before. False: it belongs to no attempt under way, and is dropped.
  [[nodiscard]] bool came(const Attempt& attempt);
  // The gradient of a microbatch that was dealt to this member is back; in a single stage: is computed.
  [[nodiscard]] StepActions back(const Attempt& attempt);
  // The products of a microbatch were added.
  [[nodiscard]] StepActions added(const Attempt& attempt);
  // A member of the first stage has all of its gradients back.
  [[nodiscard]] StepActions all_back(NodeId from, const Attempt& attempt);
  [[nodiscard]] StepActions summed(const Attempt& attempt, const StageSum& sum);
  // RECORDS has ended. `tokens`: that the step has.
  [[nodiscard]] StepActions records(const Attempt& attempt, const Records& all, std::uint64_t tokens);
  // The update is written, and the stage has this root.
  [[nodiscard]] StepActions written(std::uint64_t root);
  // The stage is whole. `last`: what its giver says of the step that it applied last.
  [[nodiscard]] StepActions loaded(std::uint64_t root, const std::optional<AppliedStep>& last);
  // A piece of Work has failed.
  [[nodiscard]] StepActions failed();

  // Bits of StepWish for the next record. kWishRest is set by changes that can wait.
  void wish(std::uint8_t wishes);

  [[nodiscard]] StepPhase phase() const { return phase_; }
  [[nodiscard]] Attempt attempt() const;
  // The first step that the stage of this member has not applied.
  [[nodiscard]] StepNumber next_step() const { return applied_; }
  [[nodiscard]] std::optional<std::uint32_t> stage() const { return stage_; }
  // It rests, and knows of no change: its beat says so.
  [[nodiscard]] bool rests_unasked() const { return phase_ == StepPhase::kResting && told_ <= layout_.epoch; }
  [[nodiscard]] RestReport report() const;
  // Whether install() takes this layout: this member rests, and knows of no later change.
  [[nodiscard]] bool takes(const DecidedLayout& layout) const {
    return phase_ == StepPhase::kResting && layout.epoch > layout_.epoch && layout.epoch >= told_;
  }
  // By the layout; nothing: it has none.
  [[nodiscard]] std::optional<std::uint32_t> stage_of(NodeId node) const {
    const auto found = layout_.members.find(node);
    return found == layout_.members.end() ? std::nullopt : std::optional(found->second);
  }
  // Members of the first stage that have not said AllBack of the attempt under way.
  [[nodiscard]] std::set<NodeId> not_back() const;

  auto operator<=>(const StepMember&) const = default;

  // The table of transitions in Markdown, for people.
  [[nodiscard]] static std::string transitions();

 private:
  using Phase = StepPhase;
  using Event = StepEvent;
  struct Action {
    void (StepMember::*run)(StepActions& todo);
    std::string_view words;
  };
  struct Transition {
    Phase from;
    Event event;
    Phase to;
    Action action;
    std::string_view why;
  };
  struct Table;  // all transitions
  struct OldStage {
    std::uint32_t stage = 0;
    StepNumber applied;
    std::uint64_t root = 0;
    auto operator<=>(const OldStage&) const = default;
  };

  void advance(Event event, StepActions& todo);

  // Actions.
  void begin(StepActions& todo);
  void update(StepActions& todo);
  void load(StepActions& todo);
  void say_report(StepActions& todo);
  void stop_and_report(StepActions& todo);
  void note_hard(StepActions&) { must_rest_ = true; }
  void note_wish(StepActions&) { wishes_ = static_cast<std::uint8_t>(wishes_ | kWishRest); }
  void join_sum(StepActions& todo) { todo.sum = attempt(); }
  void join_records(StepActions& todo) { todo.records = sum_->record; }
  void leave(StepActions& todo);
  void drop_part(StepActions&) { sum_.reset(); }

  void take_layout(const DecidedLayout& layout);
  void keep_stage();
  [[nodiscard]] Event what_follows();
  void settle(StepActions& todo);
  [[nodiscard]] bool all_are_back() const;
  [[nodiscard]] bool are_enough(const Records& all) const;
  [[nodiscard]] bool step_left() const { return !options_.end || applied_ < *options_.end; }
  [[nodiscard]] bool in_first_stage() const { return stage_ == 0U; }
  [[nodiscard]] bool is_defective(StepDefect defect) const { return options_.defect == defect; }

  Options options_;
  Phase phase_ = Phase::kResting;
  DecidedLayout layout_;      // installed
  std::uint32_t dealt_ = 0;   // microbatches of a step
  Epoch told_;                // of the last change that this member knows
  bool must_rest_ = false;    // a change that cannot wait is known
  bool rest_wished_ = false;  // by a record of the step that is being applied
  bool save_wished_ = false;  // likewise
  std::uint8_t wishes_ = 0;   // for the next record
  // The stage that it has whole, and another one that it had before.
  std::optional<std::uint32_t> stage_;
  StepNumber applied_;
  std::uint64_t root_ = 0;
  bool loads_ = false;
  std::optional<OldStage> old_;
  std::optional<AppliedStep> last_;
  std::optional<NamedRoots> roots_;
  // The attempt under way.
  std::uint32_t not_back_ = 0;          // microbatches dealt to this member whose gradients are not back
  std::uint32_t not_added_ = 0;         // microbatches whose products are not added
  std::map<NodeId, Attempt> all_back_;  // the last one of each member
  std::optional<HeldSum> sum_;
  std::optional<InstalledStep::Apply> apply_;  // what is being written
  std::uint64_t records_before_ = 0;
};

}  // namespace gossamer::pipeline
