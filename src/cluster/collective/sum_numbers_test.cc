// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/sum_numbers.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cluster/collective/test_members.h"

namespace gossamer::cluster {
namespace {

constexpr std::array kAll = {SumNumbers::kF32, SumNumbers::kBf16, SumNumbers::kF64};

const std::vector<std::pair<SumNumbers, SumsFormed>> kAllFormed = {
    {SumNumbers::kF32, SumsFormed::kAtOnce}, {SumNumbers::kBf16, SumsFormed::kAtOnce},
    {SumNumbers::kF64, SumsFormed::kAtOnce}, {SumNumbers::kF32, SumsFormed::kAside},
    {SumNumbers::kBf16, SumsFormed::kAside}, {SumNumbers::kF64, SumsFormed::kAside}};

// The same numbers as float or double, for one format.
std::string in_memory(SumNumbers numbers, const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) {
    const auto narrow = static_cast<float>(value);
    const char* const from = numbers == SumNumbers::kF64 ? reinterpret_cast<const char*>(&value)
                                                         : reinterpret_cast<const char*>(&narrow);
    bytes.append(from, number_bytes(numbers));
  }
  return bytes;
}

// To the nearest number of 8 bits, the even one of two: written anew for this test.
float rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t half = 0x7FFFU + (bits >> 16U & 1U);
  return std::bit_cast<float>((bits + half) & 0xFFFF0000U);
}

// What all members must get: contributions as they travel, added by rank. `rounds`: of the all-reduce.
std::string reference(SumNumbers numbers, const std::vector<std::vector<double>>& inputs, int rounds) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < inputs.front().size(); ++i) {
    if (numbers == SumNumbers::kF64) {
      double sum = inputs[0][i];
      for (std::size_t rank = 1; rank < inputs.size(); ++rank) sum += inputs[rank][i];
      sums.push_back(sum);
      continue;
    }
    const bool rounds_off = numbers == SumNumbers::kBf16;
    const auto sent = [&](std::size_t rank) {
      const auto x = static_cast<float>(inputs[rank][i]);
      return rounds_off ? rounded(x) : x;
    };
    float sum = sent(0);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) sum += sent(rank);
    sums.push_back(rounds_off && rounds == 2 ? rounded(sum) : sum);
  }
  return in_memory(numbers, sums);
}

std::vector<std::vector<double>> drawn(std::size_t ranks, std::size_t count, Rng& rng) {
  std::vector<std::vector<double>> inputs(ranks, std::vector<double>(count));
  for (auto& input : inputs) {
    for (double& x : input)
      x = static_cast<double>(rng.normal()) * (1 + 1e-9 * static_cast<double>(rng.below(9)));
  }
  return inputs;
}

// Claim: numbers give the same sum in slices cut at any three places, also within numbers.
TEST(SumNumbers, AnyCuts) {
  for (const SumNumbers numbers : kAll) {
    Rng rng(1, Purpose::kTest);
    const auto inputs = drawn(2, 4, rng);
    const std::string expected = reference(numbers, inputs, 1);
    const std::string first = joined(as_sent(numbers, {Slice::of(in_memory(numbers, inputs[0]))}));
    const std::string x = joined(as_sent(numbers, {Slice::of(in_memory(numbers, inputs[1]))}));
    ASSERT_EQ(x.size(), 4 * travel_bytes(numbers));
    for (std::size_t a = 0; a <= x.size(); ++a) {
      for (std::size_t b = a; b <= x.size(); ++b) {
        for (std::size_t c = b; c <= x.size(); ++c) {
          NumberSum sum(numbers, 4);
          sum.begin({Slice::of(first.substr(0, a)), Slice::of(first.substr(a))});
          sum.add({Slice::of(x.substr(0, a)), Slice::of(x.substr(a, b - a)), Slice::of(x.substr(b, c - b)),
                   Slice::of(x.substr(c))});
          ASSERT_EQ(std::memcmp(sum.bytes().data(), expected.data(), expected.size()), 0)
              << a << " " << b << " " << c;
        }
      }
    }
  }
}

// Claim: f32 and f64 travel as they lie in memory, by reference.
TEST(SumNumbers, NothingIsCopiedWithoutRounding) {
  for (const SumNumbers numbers : {SumNumbers::kF32, SumNumbers::kF64}) {
    const Slice slice = Slice::of(std::string(64, 'x'));
    EXPECT_EQ(as_sent(numbers, {slice}).at(0).bytes().data(), slice.bytes().data());
    EXPECT_EQ(as_received(numbers, {slice}).at(0).bytes().data(), slice.bytes().data());
  }
  EXPECT_TRUE(as_sent(SumNumbers::kBf16, {}).empty());
  EXPECT_TRUE(as_received(SumNumbers::kBf16, {}).empty());
}

// Claim: all members get the same bits, those of one machine that rounds contributions and adds them by rank,
// in either algorithm and for any cut of the tensor. One member alone gets what it gave, not rounded.
TEST(SumNumbers, AllReduceEqualsTheReference) {
  for (const auto& [numbers, formed] : kAllFormed) {
    for (std::size_t ranks = 1; ranks <= 5; ++ranks) {
      for (const std::uint64_t count : {0U, 1U, 7U, 64U, 400U}) {
        Rng rng(ranks, Purpose::kTest, count);
        const auto inputs = drawn(ranks, count, rng);
        Job job{.operation = {.kind = OperationKind::kAllReduce,
                              .parts = equal_parts(count, ranks, 64),
                              .numbers = numbers},
                .inputs = {},
                .expected = {}};
        for (const auto& input : inputs) job.inputs.push_back(in_memory(numbers, input));
        const bool direct = goes_direct(small_limits(), count * travel_bytes(numbers), ranks);
        const std::string expected =
            ranks == 1 ? job.inputs.front() : reference(numbers, inputs, direct ? 1 : 2);
        Members members(ranks, count, small_limits(), {}, formed);
        members.install(view_of(ranks));
        for (std::size_t rank = 0; rank < ranks; ++rank) members.begin(rank, 1, job);
        members.deliver_all();
        ASSERT_TRUE(members.broken.empty());
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          ASSERT_TRUE(members.outcomes[rank].at(1).completed);
          EXPECT_EQ(members.outcomes[rank].at(1).result.at(0), expected)
              << static_cast<int>(numbers) << ", " << ranks << " ranks, " << count;
          EXPECT_EQ(members.at(rank).held_bytes(), 0U);
          if (formed == SumsFormed::kAside) {
            EXPECT_EQ(members.at(rank).numbers_touched(), 0U);
          } else if (count == 400 && ranks > 1) {
            EXPECT_GT(members.at(rank).numbers_touched(), 0U);
          }
        }
      }
    }
  }
}

// Claim: a tensor in bf16 is half as many bytes on the way.
TEST(SumNumbers, RoundingSavesBytes) {
  std::map<SumNumbers, std::uint64_t> sent;
  for (const SumNumbers numbers : kAll) {
    Rng rng(3, Purpose::kTest);
    Job job{.operation = {.kind = OperationKind::kAllReduce,
                          .parts = equal_parts(4096, 4, 64),
                          .numbers = numbers},
            .inputs = {},
            .expected = {}};
    for (const auto& input : drawn(4, 4096, rng)) job.inputs.push_back(in_memory(numbers, input));
    Members members(4, 1);
    members.install(view_of(4));
    for (std::size_t rank = 0; rank < 4; ++rank) members.begin(rank, 1, job);
    members.deliver_all();
    sent[numbers] = members.sent[0].payload;
  }
  EXPECT_EQ(2 * sent[SumNumbers::kBf16], sent[SumNumbers::kF32]);
  EXPECT_EQ(sent[SumNumbers::kF64], 2 * sent[SumNumbers::kF32]);
}

}  // namespace
}  // namespace gossamer::cluster
