// SPDX-License-Identifier: Apache-2.0
#include "node/run_configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gossamer::node {
namespace {

using ::testing::StartsWith;

RunConfiguration some_configuration() {
  return {.engine = "sparse",
          .program = "gossamer 7.8",
          .supply = Supply{.files = {{.name = "train.cache", .manifest = {std::byte{7}}, .bytes = 123}},
                           .directory = "/run/cache\n1",
                           .deliver = "/run/parts",
                           .most_bytes = 9},
          .own = std::string("\n\0 bytes\n", 9)};
}

// What a coordinator writes is what a member reads, with a Supply and without one.
TEST(RunConfiguration, TravelsWhole) {
  RunConfiguration one = some_configuration();
  const auto with_supply = read_run_configuration(run_configuration_bytes(one));
  ASSERT_TRUE(with_supply.ok()) << with_supply.error().message();
  EXPECT_EQ(*with_supply, one);
  one.supply.reset();
  const auto without = read_run_configuration(run_configuration_bytes(one));
  ASSERT_TRUE(without.ok()) << without.error().message();
  EXPECT_EQ(*without, one);
}

// A run without a Supply has the line that all versions read. A run with one has other first words, which a
// version that knows no Supply takes for an engine that it lacks.
TEST(RunConfiguration, FirstWordsSayWhatIsNeeded) {
  RunConfiguration one = some_configuration();
  EXPECT_THAT(run_configuration_bytes(one), StartsWith("supply-2 sparse gossamer 7.8\n"));
  EXPECT_EQ(run_words("sparse", Needs::kSupply), "supply-2 sparse");
  one.supply.reset();
  EXPECT_EQ(run_configuration_bytes(one), "sparse gossamer 7.8\n" + one.own);
  for (const std::string other : {"supply-1", "supply-3"}) {
    const auto read = read_run_configuration(other + " sparse gossamer 9.0\nany bytes");
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->engine, other);
    EXPECT_EQ(read->supply, std::nullopt);
  }
}

// A Supply that is cut off, or without its size, is refused wherever it ends. Without a Supply any bytes are
// some engine's.
TEST(RunConfiguration, RefusesACutSupply) {
  RunConfiguration one = some_configuration();
  one.own.clear();
  const std::string bytes = run_configuration_bytes(one);
  const std::size_t line = bytes.find('\n') + 1;
  for (std::size_t size = line; size < bytes.size(); ++size)
    EXPECT_FALSE(read_run_configuration(bytes.substr(0, size)).ok()) << size;
  for (const char* const second : {"", "-1\n", "1 \n", "x\n", "99999999999999999999\n", "\n"}) {
    const auto read = read_run_configuration("supply-2 sparse p\n" + std::string(second));
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData);
  }
  for (const char* const any : {"", "\n", "check", "check \n", " \n\n", "supply-2"})
    EXPECT_TRUE(read_run_configuration(any).ok()) << any;
}

}  // namespace
}  // namespace gossamer::node
