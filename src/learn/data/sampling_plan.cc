// SPDX-License-Identifier: Apache-2.0
#include "learn/data/sampling_plan.h"

#include <array>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"

namespace gossamer::data {
namespace {

constexpr std::size_t kRounds = 8;

// A 64-bit finaliser (Stafford's variant 13 of MurmurHash3's): every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// A number in [0, bound), uniform for a uniform 64-bit word; the bias is below bound / 2^32.
std::uint64_t scale(std::uint64_t word, std::uint64_t bound) { return ((word >> 32) * bound) >> 32; }

}  // namespace

SamplingPlan::SamplingPlan(std::uint64_t seed, std::uint64_t records) : seed_(seed), records_(records) {
  CHECK(records >= 1 && records <= std::uint64_t{1} << 40, records);
  left_ = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(records))));
  right_ = (records + left_ - 1) / left_;
}

RecordIndex SamplingPlan::record(SampleId id) const {
  Rng rng(seed_, Purpose::kSamplingPlan, epoch(id));
  std::array<std::uint64_t, kRounds> keys;
  for (std::uint64_t& key : keys) key = rng.next_u64();

  // The walk passes at most over the numbers past the end, of which there are fewer than left_.
  std::uint64_t x = id.value % records_;
  do {
    std::uint64_t l = x % left_;
    std::uint64_t r = x / left_;
    for (std::size_t round = 0; round < kRounds; round += 2) {
      l += scale(mix(r ^ keys[round]), left_);
      if (l >= left_) l -= left_;
      r += scale(mix(l ^ keys[round + 1]), right_);
      if (r >= right_) r -= right_;
    }
    x = r * left_ + l;
  } while (x >= records_);
  return RecordIndex(x);
}

}  // namespace gossamer::data
