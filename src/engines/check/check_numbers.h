// SPDX-License-Identifier: Apache-2.0
//
// CheckNumbers: what the members of a fleet check sum, and what must come out.
//
// Of step t, thing a contributes to element i the number (a + 1597 t + i) mod 4093; a member's input is the
// sum over the things that it holds. So the sum over all things does not depend on who holds what, and has a
// closed form; all are whole numbers below 2^24, so that f32 forms it exactly, in any order.
//
// A thing's state is its chain: a number that each step changes by the digest d of the whole sum,
//   chain(t + 1) = c * chain(t) + d(t)  mod 2^64,
// so that a step left out, taken twice or taken with another sum leaves another chain for ever. As 1597 t
// mod 4093 repeats, the chain after any number of steps is found without walking through them. It is made
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

namespace gossamer::engine {

// Of the bits of a sum, in their order.
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

  // Adds what the thing contributes. Requires as many elements as the configuration says, here and below.
  void add_input(std::uint64_t thing, StepNumber step, std::span<float> input) const;
  // The first element whose bits are not those of the right sum.
  [[nodiscard]] std::optional<Wrong> find_wrong(StepNumber step, std::span<const float> sum) const;
  // The thing's chain when all steps before `step` are applied.
  [[nodiscard]] std::uint64_t chain(std::uint64_t thing, StepNumber step) const;

 private:
  // x -> factor * x + term: what steps do to a chain.
  struct Steps {
    std::uint64_t factor = 1;
    std::uint64_t term = 0;

    [[nodiscard]] std::uint64_t apply(std::uint64_t chain) const { return factor * chain + term; }
    // These steps, then those.
    [[nodiscard]] Steps then(const Steps& next) const { return {next.factor * factor, next.apply(term)}; }
  };
  void find_sums(std::uint64_t things);
  void find_chains(std::uint64_t elements);

  // Twice 0..4092, and twice the sums of the elements with (1597 t + i) mod 4093 = 0..4092: any 4093 that
  // follow each other lie in one run.
  std::vector<float> ramp_;
  std::vector<float> sums_;
  std::vector<Steps> first_;  // the first 0, 1, ... 4093 steps
};

}  // namespace gossamer::engine
