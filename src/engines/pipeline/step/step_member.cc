// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/step_member.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace gossamer::pipeline {

Attempt StepMember::attempt() const {
  const std::uint32_t tries = applied_ == layout_.step ? layout_.tries : 0;
  return {.lineage = layout_.lineage, .step = applied_, .epoch = layout_.epoch, .tries = tries};
}

// What the coordinator says.

StepActions StepMember::install(const InstalledStep& decision) {
  StepActions todo;
  const DecidedLayout& layout = decision.layout;
  if (!takes(layout)) return todo;
  take_layout(layout);
  dealt_ = decision.microbatches;
  const bool has_part = layout.members.contains(options_.self);
  if (decision.apply && stage_ && has_part && applied_ == decision.apply->attempt.step) {
    if (!sum_ || sum_->attempt != decision.apply->attempt) {
      advance(Event::kContradicted, todo);
      return todo;
    }
    apply_ = decision.apply;
    advance(Event::kApplies, todo);
    return todo;
  }
  advance(what_follows(), todo);
  return todo;
}

void StepMember::take_layout(const DecidedLayout& layout) {
  if (layout.lineage != layout_.lineage || layout.goes_back) {
    // Whatever this member has is of another history. The driver may find the checkpoint on its own disk.
    stage_.reset();
    old_.reset();
    last_.reset();
    roots_.reset();
    sum_.reset();
  }
  layout_ = layout;
  told_ = std::max(told_, layout.epoch);
  must_rest_ = rest_wished_ = save_wished_ = false;
  wishes_ = 0;
  records_before_ = 0;
  std::erase_if(all_back_, [&](const auto& one) { return one.second.epoch < layout.epoch; });
}

// The event by which a member takes on its layout, once nothing is left to apply.
StepEvent StepMember::what_follows() {
  const auto part = layout_.members.find(options_.self);
  loads_ = false;
  if (part == layout_.members.end()) {
    // Others go on without this member, so it is no holder any more. A lost stage may be taken from it.
    keep_stage();
    stage_.reset();
    return Event::kNoPart;
  }
  if (stage_ && applied_ > layout_.step) return Event::kContradicted;
  if (stage_ && applied_ < layout_.step) stage_.reset();  // others have gone on without this member
  if (stage_ != part->second && old_ && old_->stage == part->second && old_->applied == layout_.step) {
    stage_ = old_->stage;
    root_ = old_->root;
    old_.reset();
    sum_.reset();
  }
  if (stage_ != part->second) {
    loads_ = true;
    return Event::kLoads;
  }
  return step_left() ? Event::kBegins : Event::kNoPart;
}

void StepMember::keep_stage() {
  if (stage_) old_ = {.stage = *stage_, .applied = applied_, .root = root_};
}

StepActions StepMember::change(Epoch epoch, Change change) {
  StepActions todo;
  if (epoch < told_ || epoch <= layout_.epoch) return todo;
  told_ = epoch;
  advance(change == Change::kHard ? Event::kHard : Event::kSoft, todo);
  return todo;
}

StepActions StepMember::lost() {
  StepActions todo;
  if (phase_ != Phase::kResting) advance(Event::kHard, todo);
  return todo;
}

// What others say.

bool StepMember::came(const Attempt& attempt) {
  const bool counts = phase_ == Phase::kComputing &&
                      (attempt == this->attempt() || is_defective(StepDefect::kTensorOfOldView));
  if (counts) ++not_added_;
  return counts;
}

StepActions StepMember::back(const Attempt& attempt) {
  StepActions todo;
  const bool counts = attempt == this->attempt() || is_defective(StepDefect::kTensorOfOldView);
  if (phase_ != Phase::kComputing || not_back_ == 0 || !counts) return todo;
  if (--not_back_ == 0) {
    todo.all_back = true;
    all_back_[options_.self] = this->attempt();
  }
  settle(todo);
  return todo;
}

StepActions StepMember::added(const Attempt& attempt) {
  StepActions todo;
  const bool counts = attempt == this->attempt() || is_defective(StepDefect::kTensorOfOldView);
  if (phase_ != Phase::kComputing || not_added_ == 0 || !counts) return todo;
  --not_added_;
  settle(todo);
  return todo;
}

StepActions StepMember::all_back(NodeId from, const Attempt& attempt) {
  StepActions todo;
  const Attempt here = this->attempt();
  const bool is_over = comes_before(attempt, here);
  const bool is_of_old_view = phase_ == Phase::kResting && attempt.epoch <= here.epoch;
  if (is_over || is_of_old_view || phase_ == Phase::kLeft) return todo;
  Attempt& last = all_back_[from];
  if (comes_before(last, attempt)) last = attempt;
  settle(todo);
  return todo;
}

bool StepMember::all_are_back() const {
  const auto is_back = [&](const auto& member) {
    const auto said = all_back_.find(member.first);
    return said != all_back_.end() && said->second == attempt();
  };
  if (is_defective(StepDefect::kAllBackOfOne)) return std::ranges::any_of(layout_.members, is_back);
  return not_back().empty();
}

std::set<NodeId> StepMember::not_back() const {
  std::set<NodeId> missing;
  for (const auto& [node, stage] : layout_.members) {
    const auto said = all_back_.find(node);
    const bool is_back = said != all_back_.end() && said->second == attempt();
    if (stage == 0 && !is_back) missing.insert(node);
  }
  return missing;
}

void StepMember::settle(StepActions& todo) {
  if (phase_ == Phase::kComputing && not_added_ == 0 && not_back_ == 0 && all_are_back())
    advance(Event::kAllAdded, todo);
}

StepActions StepMember::summed(const Attempt& attempt, const StageSum& sum) {
  StepActions todo;
  if (phase_ != Phase::kSumming) return todo;
  if (attempt != this->attempt() && !is_defective(StepDefect::kSumOfOldAttempt)) return todo;
  sum_ = {.attempt = this->attempt(),
          .record = {.hash = sum.hash,
                     .squared_norm = sum.squared_norm,
                     .root = root_,
                     .loss = sum.loss,
                     .tokens = sum.tokens,
                     .records_before = records_before_,
                     .not_finite = sum.not_finite,
                     .wishes = wishes_}};
  // A wish for a checkpoint is for one step.
  wishes_ = static_cast<std::uint8_t>(wishes_ & ~unsigned{kWishCheckpoint});
  advance(Event::kSummed, todo);
  return todo;
}

bool StepMember::are_enough(const Records& all) const {
  const auto is_here = [&](const auto& member) { return all.contains(member.first); };
  const auto has_stage = [&](const auto& member) {
    return std::ranges::any_of(
        layout_.members, [&](const auto& other) { return other.second == member.second && is_here(other); });
  };
  if (is_defective(StepDefect::kOneNormAStage)) return std::ranges::all_of(layout_.members, has_stage);
  return all.size() == layout_.members.size() && std::ranges::all_of(layout_.members, is_here);
}

StepActions StepMember::records(const Attempt& attempt, const Records& all, std::uint64_t tokens) {
  StepActions todo;
  const bool is_late = phase_ == Phase::kResting && sum_ && is_defective(StepDefect::kLateNorm);
  if (phase_ != Phase::kGathering && !is_late) return todo;
  if (attempt != this->attempt() || !are_enough(all)) return todo;
  roots_ = {.step = applied_};
  for (const auto& [node, record] : all) roots_->by_stage.emplace(layout_.members.at(node), record.root);
  if (look_at(all, layout_.members, tokens).row != RecordsFit::Row::kFit) {
    sum_->refused = true;
    advance(Event::kMisfit, todo);
    return todo;
  }
  const std::uint8_t wishes = wishes_of(all);
  rest_wished_ = (wishes & kWishRest) != 0;
  save_wished_ = (wishes & (kWishCheckpoint | kWishEnd)) != 0;
  records_before_ = hash_of(all);
  apply_ = {.attempt = attempt, .total = total_norm(all, layout_.members)};
  advance(Event::kFit, todo);
  return todo;
}

// What the driver has done.

StepActions StepMember::written(std::uint64_t root) {
  StepActions todo;
  if (phase_ != Phase::kApplying) return todo;
  last_ = {
      .attempt = apply_->attempt, .record = sum_->record, .total = apply_->total, .skipped = apply_->skipped};
  ++applied_;
  root_ = root;
  apply_.reset();
  sum_.reset();
  old_.reset();  // nobody is without this step any more that could need it
  todo.save = std::exchange(save_wished_, false);
  // The layout may give another stage than the one that was written.
  loads_ = stage_ != layout_.members.at(options_.self);
  if (must_rest_ || rest_wished_ || !step_left()) {
    advance(Event::kWrittenRests, todo);
  } else {
    advance(loads_ ? Event::kWrittenLoads : Event::kWritten, todo);
  }
  return todo;
}

StepActions StepMember::loaded(std::uint64_t root, const std::optional<AppliedStep>& last) {
  StepActions todo;
  if (phase_ != Phase::kLoading) return todo;
  keep_stage();
  stage_ = layout_.members.at(options_.self);
  loads_ = false;
  applied_ = layout_.step;
  root_ = root;
  last_ = last;
  sum_.reset();
  advance(step_left() ? Event::kLoaded : Event::kWrittenRests, todo);
  return todo;
}

StepActions StepMember::failed() {
  StepActions todo;
  advance(Event::kFails, todo);
  return todo;
}

void StepMember::wish(std::uint8_t wishes) { wishes_ = static_cast<std::uint8_t>(wishes_ | wishes); }

// Actions.

void StepMember::begin(StepActions& todo) {
  sum_.reset();
  todo.begin = attempt();
  not_back_ = not_added_ = in_first_stage() ? dealt_ : 0;
  if (in_first_stage() && dealt_ == 0) {
    todo.all_back = true;
    all_back_[options_.self] = attempt();
  }
  settle(todo);
}

void StepMember::update(StepActions& todo) { todo.update = apply_; }

void StepMember::load(StepActions& todo) {
  sum_.reset();
  if (is_defective(StepDefect::kMovedTooEarly)) stage_.reset();
  if (!stage_) applied_ = layout_.step;
  todo.load = layout_.members.at(options_.self);
}

void StepMember::say_report(StepActions& todo) {
  must_rest_ = rest_wished_ = false;
  if (is_defective(StepDefect::kNormForgotten)) sum_.reset();
  if (told_ > layout_.epoch) todo.report = told_;
}

void StepMember::stop_and_report(StepActions& todo) {
  todo.stop = true;
  not_back_ = not_added_ = 0;
  std::erase_if(all_back_, [&](const auto& one) { return one.second.epoch <= layout_.epoch; });
  say_report(todo);
}

void StepMember::leave(StepActions& todo) { todo.leave = todo.stop = true; }

RestReport StepMember::report() const {
  RestReport said{.installed = layout_.epoch,
                  .lineage = layout_.lineage,
                  .stage = stage_,
                  .loads = loads_,
                  .applied = applied_,
                  .last = last_,
                  .sum = sum_,
                  .roots = roots_};
  if (old_) {
    const DecidedLayout::Stage layers = layout_.stages.at(old_->stage);
    said.whole.push_back(
        {.layers = layers, .lineage = layout_.lineage, .step = old_->applied, .root = old_->root});
  }
  if (is_defective(StepDefect::kApplyNotReported) && said.last && said.applied.value > 0) {
    --said.applied.value;
    said.last.reset();
    said.sum.reset();
  }
  return said;
}

}  // namespace gossamer::pipeline
