// SPDX-License-Identifier: Apache-2.0
//
// FleetRounds: the rounds of the steps that a member has in flight. It knows which one is computed next, and
// keeps what members have given in a round until the next round takes it.
//
// Thread rule: the loop thread. Pure: no time, no messages.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/slice.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/fleet/step/step_order.h"

namespace gossamer::sparse_engine {

class FleetRounds {
 public:
  using Item = StepOrder::Item;
  FleetRounds(std::size_t layers, std::size_t staleness)
      : rounds_(step_rounds(layers)), order_(rounds_.size(), staleness) {}

  [[nodiscard]] const std::vector<FleetRound>& all() const { return rounds_; }
  [[nodiscard]] FleetRound round(const Item& item) const { return rounds_[item.round]; }
  [[nodiscard]] bool is_last(const Item& item) const { return item.round + 1 == rounds_.size(); }
  [[nodiscard]] const StepOrder& order() const { return order_; }

  // Forgets what others have given: the layout is another one.
  void forget() { given_.clear(); }
  // No step is in flight any more. `first` begins next.
  void restart(StepNumber first) { order_.restart(first); }

  // The first round of a step begins with nothing, and every other one with the gifts of the round before.
  [[nodiscard]] static bool needs_gifts(const Item& item) { return item.round > 0; }
  [[nodiscard]] bool waits(const Item& item) const {
    return needs_gifts(item) && !given_.contains(before(item));
  }
  // Whether all rounds of the oldest step but the last are computed, and it is this step. Others can apply it
  // only then.
  [[nodiscard]] bool has_given_all(StepNumber step) const {
    const auto oldest = order_.oldest();
    return oldest && oldest->step == step && is_last(*oldest);
  }
  // The last round of a step that lacks nothing more; nothing: it lacks something.
  [[nodiscard]] std::optional<Item> last_of(StepNumber step) const {
    return has_given_all(step) && !waits(*order_.oldest()) ? order_.oldest() : std::nullopt;
  }
  // All members have given something in a round.
  void give(const Item& item, std::vector<Slices> gifts) { given_[item] = std::move(gifts); }
  // The round is computed now. Returns its gifts, by rank. Requires that it does not wait.
  [[nodiscard]] std::vector<Slices> begin(const Item& item) {
    computing_ = item;
    if (!needs_gifts(item)) return {};
    return std::move(given_.extract(before(item)).mapped());
  }
  // The round that began last is computed.
  Item computed() {
    order_.computed(computing_);
    return computing_;
  }

 private:
  [[nodiscard]] static Item before(const Item& item) { return {.step = item.step, .round = item.round - 1}; }

  const std::vector<FleetRound> rounds_;
  StepOrder order_;
  Item computing_;
  std::map<Item, std::vector<Slices>> given_;  // by all members, until the next round is computed
};

}  // namespace gossamer::sparse_engine
