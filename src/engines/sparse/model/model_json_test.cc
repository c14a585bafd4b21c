// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

// A header of too many brackets is refused: where the format would stand, in a field, in one that nobody
// knows.
TEST(ModelJson, NestedTooDeeply) {
  const Model model = testing::random_model({.features = 9, .labels = 7, .hidden = 16});
  host::SimDisk disk;
  ASSERT_TRUE(save_model(disk, "m", model, {}).ok());
  const auto good = nlohmann::json::parse(*host::read_text(disk, "m/model.json"));
  for (const char* field : {"format", "task", "weighting", "metadata", "more"}) {
    nlohmann::json header = good;
    header[field] = "HERE";
    std::string text = header.dump();
    const std::size_t levels = 400'000;
    text.replace(text.find("\"HERE\""), 6, std::string(levels, '[') + std::string(levels, ']'));
    ASSERT_TRUE(host::replace_file(disk, "m/model.json", text).ok());
    const auto bad = load_model(disk, "m");
    ASSERT_FALSE(bad.ok()) << field;
    EXPECT_EQ(bad.error().kind, ErrorKind::kBadData) << field;
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
