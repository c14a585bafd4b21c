// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_exchanges.h"

#include <gtest/gtest.h>

#include <map>

namespace gossamer::sparse_engine {
namespace {

using Kind = ExchangeName::Kind;

// Claim: every name has a number of its own, and the number gives the name again.
TEST(ExchangeName, HasANumberOfItsOwn) {
  for (const std::uint64_t rounds : {1U, 4U, 8U}) {
    std::map<std::uint64_t, ExchangeName> names;
    const auto add = [&](const ExchangeName& name) {
      const cluster::OperationId number = pack(name, rounds);
      EXPECT_EQ(unpack(number, rounds), name);
      EXPECT_TRUE(names.emplace(number.value, name).second) << number.value;
    };
    for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
      for (std::uint64_t round = 0; round < rounds; ++round)
        add({.kind = Kind::kRound, .step = StepNumber(step), .round = round});
      for (std::uint64_t part = 0; part < kSnapshotExchanges; ++part)
        add({.kind = Kind::kSnapshot, .step = StepNumber(step), .round = part});
    }
    for (std::uint64_t stage = 0; stage < 10; ++stage)
      add({.kind = Kind::kStage, .step = {}, .round = stage});
    add({.kind = Kind::kHalted, .step = {}, .round = 0});
  }
}

// Claim: numbers are those of docs/protocols/sparse-step.md.
TEST(ExchangeName, HasTheNumberOfThePage) {
  EXPECT_EQ(pack({.kind = Kind::kRound, .step = StepNumber(7), .round = 2}, 4).value, 30U);
  EXPECT_EQ(pack({.kind = Kind::kStage, .step = {}, .round = 3}, 4).value, (1ULL << 62) + 3);
  EXPECT_EQ(pack({.kind = Kind::kSnapshot, .step = StepNumber(5), .round = 2}, 4).value, (1ULL << 63) + 17);
  EXPECT_EQ(pack({.kind = Kind::kHalted, .step = {}, .round = 0}, 4).value, (1ULL << 63) - 1);
}

}  // namespace
}  // namespace gossamer::sparse_engine
