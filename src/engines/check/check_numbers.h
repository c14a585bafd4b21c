// SPDX-License-Identifier: Apache-2.0
//
// CheckNumbers: the vectors that the members of a fleet check sum, and the sums that must come out.
//
//   contribution of thing a to element i in step t = (a + 1597 t + i) mod 4093
//
// A member's input is the sum over the things that it holds. So the sum over all things does not depend on
// the holders, and has a closed form. All are whole numbers below 2^24, so f32 forms the sum exactly, in any
// order.
//
// A thing's state is its chain: a number that each step changes by the digest d of the whole sum.
//
//   chain(t + 1) = c * chain(t) + d(t)  mod 2^64
//
// So a step that is left out, taken twice or taken with another sum leaves another chain for ever. As 1597 t
// mod 4093 repeats, the chain after any number of steps is found without walking through them. It protects
// against accidents, not against forgers.
//
// Cost: 24 bytes for each of 4093 places; construction is one pass over the elements. Thread rule: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engines/check/check_config.h"

namespace gossamer::check {

// The digest of a sum's bits, in their order.
[[nodiscard]] std::uint64_t check_digest(std::span<const float> sum);
[[nodiscard]] std::uint64_t next_chain(std::uint64_t chain, std::uint64_t digest);

class CheckNumbers {
 public:
  struct Wrong {
    std::size_t element = 0;
    float got = 0;
    float expected = 0;
  };

  // Requires a configuration in its ranges.
  explicit CheckNumbers(const CheckConfig& config);

  // Adds the thing's contribution. Requires as many elements as the configuration has, here and below.
  void add_input(std::uint64_t thing, StepNumber step, std::span<float> input) const;
  // The first element whose bits differ from the right sum.
  [[nodiscard]] std::optional<Wrong> find_wrong(StepNumber step, std::span<const float> sum) const;
  // The thing's chain when all steps before `step` are applied.
  [[nodiscard]] std::uint64_t chain(std::uint64_t thing, StepNumber step) const;

 private:
  // The effect of steps on a chain: x -> factor * x + term.
  struct Steps {
    std::uint64_t factor = 1;
    std::uint64_t term = 0;

    [[nodiscard]] std::uint64_t apply(std::uint64_t chain) const { return factor * chain + term; }
    // These steps followed by `next`.
    [[nodiscard]] Steps then(const Steps& next) const { return {next.factor * factor, next.apply(term)}; }
  };
  void find_sums(std::uint64_t things);
  void find_chains(std::uint64_t elements);

  // Each is a cycle, stored twice so that any 4093 places in a row are contiguous. ramp_: 0..4092. sums_: the
  // sums of the elements with (1597 t + i) mod 4093 = 0..4092.
  std::vector<float> ramp_;
  std::vector<float> sums_;
  std::vector<Steps> first_;  // the first 0, 1, ... 4093 steps
};

}  // namespace gossamer::check
