// SPDX-License-Identifier: Apache-2.0
//
// Compares with the definitions in check_numbers.h, worked out term by term.
#include "engines/check/check_numbers.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace gossamer::check {
namespace {

std::uint64_t term(std::uint64_t thing, std::uint64_t step, std::uint64_t element) {
  return (thing + 1597 * step + element) % 4093;
}

std::vector<float> right_sum(const CheckConfig& config, std::uint64_t step) {
  std::vector<float> sum;
  for (std::uint64_t i = 0; i < config.elements; ++i) {
    std::uint64_t whole = 0;
    for (std::uint64_t thing = 0; thing < config.things; ++thing) whole += term(thing, step, i);
    sum.push_back(static_cast<float>(whole));
  }
  return sum;
}

// Claim: inputs and the right sum follow the definition, at lengths on both sides of the period.
TEST(CheckNumbers, SumsAreThoseOfTheDefinition) {
  for (const std::uint64_t elements : {1U, 2U, 63U, 4092U, 4093U, 4094U, 9000U}) {
    const CheckConfig config{.things = 5, .elements = elements};
    const CheckNumbers numbers(config);
    for (const std::uint64_t step : {0U, 1U, 2U, 4092U, 4093U, 1'000'000U}) {
      std::vector<float> input(elements);
      numbers.add_input(3, StepNumber(step), input);
      for (std::uint64_t i = 0; i < elements; ++i)
        ASSERT_EQ(input[i], static_cast<float>(term(3, step, i))) << step << " " << i;
      EXPECT_FALSE(numbers.find_wrong(StepNumber(step), right_sum(config, step)).has_value());
    }
  }
}

// Claim: the sum has the right bits for any holders and any order of the members' inputs, also where it is
// largest.
TEST(CheckNumbers, AnyHoldingsHaveTheSameSum) {
  Rng rng(1, Purpose::kTest);
  for (const std::uint64_t things : {1U, 2U, 7U, 4000U}) {
    const CheckConfig config{.things = things, .elements = 5000};
    const CheckNumbers numbers(config);
    for (std::uint64_t members = 1; members <= 4; ++members) {
      const StepNumber step(rng.below(1'000'000));
      std::vector<std::vector<float>> inputs(members, std::vector<float>(config.elements));
      for (std::uint64_t thing = 0; thing < things; ++thing)
        numbers.add_input(thing, step, inputs[rng.below(members)]);
      std::vector<float> sum(config.elements);
      for (const auto& input : inputs) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
      }
      EXPECT_FALSE(numbers.find_wrong(step, sum).has_value()) << things << " " << members;
    }
  }
}

// Claim: one wrong number is found and named, wherever it stands. So is a contribution that is missing,
// doubled, or of another step.
TEST(CheckNumbers, WhatIsWrongIsFound) {
  const CheckConfig config{.things = 5, .elements = 5000};
  const CheckNumbers numbers(config);
  const StepNumber step(77);
  for (const std::size_t element : {0U, 1U, 4092U, 4093U, 4999U}) {
    std::vector<float> sum = right_sum(config, step.value);
    const float right = sum[element];
    sum[element] += 1;
    sum.back() += 1;
    const auto wrong = numbers.find_wrong(step, sum);
    ASSERT_TRUE(wrong.has_value());
    EXPECT_EQ(wrong->element, element);
    EXPECT_EQ(wrong->expected, right);
    EXPECT_EQ(wrong->got, right + (element == 4999 ? 2 : 1));
  }
  for (std::uint64_t thing = 0; thing < config.things; ++thing) {
    std::vector<float> doubled = right_sum(config, step.value);
    numbers.add_input(thing, step, doubled);
    EXPECT_TRUE(numbers.find_wrong(step, doubled).has_value());
    std::vector<float> late(config.elements);
    for (std::uint64_t other = 0; other < config.things; ++other)
      numbers.add_input(other, StepNumber(step.value - (other == thing ? 1 : 0)), late);
    EXPECT_TRUE(numbers.find_wrong(step, late).has_value());
  }
  for (std::uint64_t other = 1; other < 4093; ++other)
    ASSERT_TRUE(numbers.find_wrong(StepNumber(step.value + other), right_sum(config, step.value)));
}

// Claim: chain() equals the chain made step by step from the sums, far beyond the period.
TEST(CheckNumbers, ChainsAreThoseOfTheSums) {
  for (const std::uint64_t elements : {1U, 10U, 5000U}) {
    const CheckConfig config{.things = 3, .elements = elements};
    const CheckNumbers numbers(config);
    const std::uint64_t steps = elements == 5000 ? 300 : 10'000;
    for (std::uint64_t thing = 0; thing < config.things; ++thing) {
      std::uint64_t chain = numbers.chain(thing, StepNumber(0));
      for (std::uint64_t step = 0; step < steps; ++step) {
        ASSERT_EQ(numbers.chain(thing, StepNumber(step)), chain) << "thing " << thing << " step " << step;
        chain = next_chain(chain, check_digest(right_sum(config, step)));
      }
    }
  }
}

// Claim: chains differ between things and steps. A step that is left out, taken twice or swapped with its
// neighbour shows at once and for ever.
TEST(CheckNumbers, ChainsShowWhatWasLost) {
  const CheckConfig config{.things = 8, .elements = 64};
  const CheckNumbers numbers(config);
  std::set<std::uint64_t> seen;
  for (std::uint64_t thing = 0; thing < config.things; ++thing) {
    for (std::uint64_t step = 0; step < 2000; ++step) seen.insert(numbers.chain(thing, StepNumber(step)));
  }
  EXPECT_EQ(seen.size(), 8u * 2000);
  const auto walk = [&](const std::vector<std::uint64_t>& steps) {
    std::uint64_t chain = numbers.chain(1, StepNumber(0));
    for (const std::uint64_t step : steps) chain = next_chain(chain, check_digest(right_sum(config, step)));
    return chain;
  };
  std::vector<std::uint64_t> good(100);
  for (std::size_t i = 0; i < good.size(); ++i) good[i] = i;
  ASSERT_EQ(walk(good), numbers.chain(1, StepNumber(100)));
  for (std::ptrdiff_t at = 0; at < 99; ++at) {
    std::vector<std::uint64_t> bad = good;
    std::swap(bad[static_cast<std::size_t>(at)], bad[static_cast<std::size_t>(at) + 1]);
    EXPECT_NE(walk(bad), numbers.chain(1, StepNumber(100)));
    bad = good;
    bad.erase(bad.begin() + at);
    for (const std::uint64_t step : {99U, 100U}) EXPECT_NE(walk(bad), numbers.chain(1, StepNumber(step)));
    bad = good;
    bad.insert(bad.begin() + at, good[static_cast<std::size_t>(at)]);
    for (const std::uint64_t step : {100U, 101U}) EXPECT_NE(walk(bad), numbers.chain(1, StepNumber(step)));
  }
}

}  // namespace
}  // namespace gossamer::check
