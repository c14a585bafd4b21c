// SPDX-License-Identifier: Apache-2.0
//
// Rng: counter-based random numbers (Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011). A stream is named by (seed, purpose, a, b), never by a thread or node. Any node that needs
// the numbers of step a, sample b makes them anew and gets the same ones. Recovery by replay, and equal
// results on any number of nodes, rest on that (docs/ARCHITECTURE.md, "Determinism").
//
// Cost: 16 bytes per 10 multiply rounds; construction is free. Thread rule: one owner per object.
#pragma once

#include <array>
#include <cstdint>

namespace gossamer {

// The purpose of a stream. A new one is added at the end, so that all older streams stay as they were. The
// comments say what `a` and `b` are; an epoch here is one pass over the records.
enum class Purpose : std::uint32_t {
  kSamplingPlan = 1,   // a = epoch
  kEmbeddingInit = 2,  // a = row
  kOutputInit = 3,     // a = row
  kDropout = 4,        // a = step, b = sample in the step + 2^16 * hidden layer
  kNegatives = 5,      // a = step
  kSplit = 6,          // a = record
  kTest = 7,
  kSynthetic = 8,       // a = record
  kFault = 9,           // simulated host
  kInputDropout = 10,   // a = step, b = sample in the step
  kHashFunctions = 11,  // a = function, b = 0 its definition, 1 its donors
  kBucketSample = 12,   // a = bucket's key, b = table
  kTableOrder = 13,     // a = step, b = sample in the step
  kDenseInit = 14,      // a = row, b = layer
  kSubsampling = 15,    // a = four positions of a text, b = epoch
  kWindow = 16,         // a = position of a text, b = epoch
  kBackoff = 17,        // a = node
  kStageInit = 18,      // a = layer, b = tensor of it
  kNextToken = 19,      // a = text token that is added to a text
  kLineSample = 20,     // a number for each line of a text
};

// The ten-round Philox4x32 block function: 4 words in, 4 words out, under a 2-word key.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

class Rng {
 public:
  // `b` must be below 2^32: together with the block number it fills the counter's last two words.
  Rng(std::uint64_t seed, Purpose purpose, std::uint64_t a = 0, std::uint32_t b = 0);

  // Uniform over all 32-bit or 64-bit values.
  std::uint32_t next_u32() {
    if (used_ == 4) refill();
    return block_[used_++];
  }
  std::uint64_t next_u64() {
    const std::uint64_t high = next_u32();
    return (high << 32) | next_u32();
  }
  // Uniform in [0, bound), exactly (rejection). Requires bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1), 24 random bits.
  float uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24F; }
  // Standard normal (Box-Muller): two of them from two numbers.
  float normal();
  // Goes on as if next_u32() had been called so often, at the cost of one call at most. Requires that
  // normal() has been called an even number of times.
  void discard(std::uint64_t numbers);

 private:
  void refill();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;
  bool has_spare_ = false;
  float spare_ = 0;
};

}  // namespace gossamer
