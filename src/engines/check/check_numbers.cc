// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_numbers.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace gossamer::check {
namespace {

// Primes. The stride visits every place before it comes back. Neither 1 MiB chunks nor other round numbers of
// elements are a multiple of the period.
constexpr std::uint64_t kPeriod = 4093;
constexpr std::uint64_t kStride = 1597;
// Odd numbers with bits in all places.
constexpr std::uint64_t kDigestFactor = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kChainFactor = 0x5851f42d4c957f2d;
constexpr std::uint64_t kThingFactor = 0xbf58476d1ce4e5b9;

// The place of a step's element 0 in the period.
std::uint64_t place_of(StepNumber step) { return step.value % kPeriod * kStride % kPeriod; }

std::uint64_t bits(float number) { return std::bit_cast<std::uint32_t>(number); }

std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

std::uint64_t first_chain(std::uint64_t thing) { return (thing + 1) * kThingFactor; }

}  // namespace

std::uint64_t check_digest(std::span<const float> sum) {
  std::uint64_t digest = 0;
  for (const float number : sum) digest = digest * kDigestFactor + bits(number);
  return digest;
}

std::uint64_t next_chain(std::uint64_t chain, std::uint64_t digest) { return kChainFactor * chain + digest; }

CheckNumbers::CheckNumbers(const CheckConfig& config) {
  // Things differ in their places, and the largest sum is a whole number that f32 represents.
  CHECK(config.things < kPeriod && config.things * (kPeriod - 1) <= 1ULL << 24, config.things);
  for (std::uint64_t i = 0; i < 2 * kPeriod; ++i) ramp_.push_back(static_cast<float>(i % kPeriod));
  find_sums(config.things);
  find_chains(config.elements);
}

void CheckNumbers::find_sums(std::uint64_t things) {
  std::uint64_t sum = things * (things - 1) / 2;
  for (std::uint64_t place = 0; place < kPeriod; ++place) {
    sums_.push_back(static_cast<float>(sum));
    // Each thing contributes one more at the next place, except the one that begins again at 0.
    const std::uint64_t wraps = kPeriod - 1 - place;
    sum += things - (wraps < things ? kPeriod : 0);
  }
  sums_.insert(sums_.end(), sums_.begin(), sums_.begin() + kPeriod);
}

// Finds the chains with a rolling digest. The digest one place further is this digest without the first
// element and with one more (Karp and Rabin, "Efficient randomized pattern-matching algorithms", 1987).
void CheckNumbers::find_chains(std::uint64_t elements) {
  const auto at = [this](std::uint64_t place) { return bits(sums_[place % kPeriod]); };
  const std::uint64_t first = power(kDigestFactor, elements - 1);
  std::vector<std::uint64_t> digests(kPeriod);
  for (std::uint64_t i = 0; i < elements; ++i) digests[0] = digests[0] * kDigestFactor + at(i);
  for (std::uint64_t place = 1; place < kPeriod; ++place) {
    digests[place] = (digests[place - 1] - first * at(place - 1)) * kDigestFactor + at(place - 1 + elements);
  }
  first_.emplace_back();
  for (std::uint64_t step = 0; step < kPeriod; ++step)
    first_.push_back(first_.back().then({kChainFactor, digests[place_of(StepNumber(step))]}));
}

void CheckNumbers::add_input(std::uint64_t thing, StepNumber step, std::span<float> input) const {
  const float* const terms = ramp_.data() + (thing + place_of(step)) % kPeriod;
  for (std::size_t begin = 0; begin < input.size(); begin += kPeriod) {
    const std::size_t count = std::min(input.size() - begin, static_cast<std::size_t>(kPeriod));
    float* const numbers = input.data() + begin;
    for (std::size_t i = 0; i < count; ++i) numbers[i] += terms[i];
  }
}

std::optional<CheckNumbers::Wrong> CheckNumbers::find_wrong(StepNumber step,
                                                            std::span<const float> sum) const {
  const float* const right = sums_.data() + place_of(step);
  for (std::size_t begin = 0; begin < sum.size(); begin += kPeriod) {
    const auto part = sum.subspan(begin, std::min(sum.size() - begin, static_cast<std::size_t>(kPeriod)));
    if (std::memcmp(part.data(), right, part.size_bytes()) == 0) continue;
    std::size_t i = 0;
    while (bits(part[i]) == bits(right[i])) ++i;
    return Wrong{.element = begin + i, .got = part[i], .expected = right[i]};
  }
  return std::nullopt;
}

std::uint64_t CheckNumbers::chain(std::uint64_t thing, StepNumber step) const {
  Steps whole;
  Steps doubled = first_.back();
  for (std::uint64_t periods = step.value / kPeriod; periods != 0; periods /= 2) {
    if (periods % 2 == 1) whole = whole.then(doubled);
    doubled = doubled.then(doubled);
  }
  return whole.then(first_[step.value % kPeriod]).apply(first_chain(thing));
}

}  // namespace gossamer::check
