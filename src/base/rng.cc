// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <cmath>

#include "base/check.h"

namespace gossamer {
namespace {

// Mixes the 64-bit seed, the purpose and the upper half of `a` into a 64-bit key (SplitMix64's finaliser).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c[2];
    c = {high(p1) ^ c[1] ^ k[0], low(p1), high(p0) ^ c[3] ^ k[1], low(p0)};
    k[0] += 0x9E3779B9U;
    k[1] += 0xBB67AE85U;
  }
  return c;
}

Rng::Rng(std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint32_t b) {
  const std::uint64_t key =
      mix(mix(seed) ^ (std::uint64_t{static_cast<std::uint32_t>(purpose)} << 32) ^ high(a));
  key_ = {low(key), high(key)};
  counter_ = {0, 0, b, low(a)};
}

void Rng::refill() {
  block_ = philox4x32(counter_, key_);
  used_ = 0;
  if (++counter_[0] == 0) ++counter_[1];
}

void Rng::discard(std::uint64_t numbers) {
  CHECK(!has_spare_);
  const std::uint64_t left = block_.size() - used_;
  if (numbers <= left) {
    used_ += static_cast<unsigned>(numbers);
    return;
  }
  numbers -= left;
  const std::uint64_t drawn = (std::uint64_t{counter_[1]} << 32) | counter_[0];
  const std::uint64_t next = drawn + numbers / block_.size();
  counter_[0] = low(next);
  counter_[1] = high(next);
  used_ = static_cast<unsigned>(block_.size());
  if (numbers % block_.size() == 0) return;
  refill();
  used_ = static_cast<unsigned>(numbers % block_.size());
}

std::uint64_t Rng::below(std::uint64_t bound) {
  CHECK(bound > 0);
  // Reject the incomplete last interval so that every value is equally likely.
  const std::uint64_t limit = UINT64_MAX - (UINT64_MAX % bound + 1) % bound;
  std::uint64_t x = next_u64();
  while (x > limit) x = next_u64();
  return x % bound;
}

float Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // 1 - u lies in (0, 1], so that the logarithm is finite.
  const float radius = std::sqrt(-2.0F * std::log(1.0F - uniform()));
  const float angle = 6.28318530718F * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

}  // namespace gossamer
