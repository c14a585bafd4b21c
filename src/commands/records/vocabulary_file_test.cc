// SPDX-License-Identifier: Apache-2.0
#include "commands/records/vocabulary_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::commands {
namespace {

// Claim: a vocabulary reads back as it was written. A missing file is no vocabulary. No option is a default.
TEST(VocabularyFile, RoundTrips) {
  host::SimDisk disk;
  auto none = read_vocabulary(disk, "vocabulary.json");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());

  text::FeaturizerState state;
  state.options = {.stems = false,
                   .subword_min = 3,
                   .subword_max = 5,
                   .min_document_frequency = 7,
                   .max_features = 11,
                   .stem_weight = 0.1F,
                   .subword_weight = 0.6F};
  state.features = {"deer", "<de", "caf\xc3\xa9", "a\"b"};
  state.document_frequency = {4, 3, 2, 1};
  state.documents = 9;
  ASSERT_TRUE(write_vocabulary(disk, "vocabulary.json", state).ok());
  auto back = read_vocabulary(disk, "vocabulary.json");
  ASSERT_TRUE(back.ok() && back->has_value());
  EXPECT_EQ((*back)->options, state.options);
  EXPECT_EQ((*back)->features, state.features);
  EXPECT_EQ((*back)->document_frequency, state.document_frequency);
  EXPECT_EQ((*back)->documents, 9U);
}

// A damaged file is an error that names it, wherever it is cut.
TEST(VocabularyFile, RefusesDamage) {
  host::SimDisk disk;
  text::FeaturizerState state;
  state.features = {"deer"};
  state.document_frequency = {1};
  ASSERT_TRUE(write_vocabulary(disk, "v.json", state).ok());
  const std::string whole = *host::read_text(disk, "v.json");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    ASSERT_TRUE(host::replace_file(disk, "v.json", whole.substr(0, length)).ok());
    auto back = read_vocabulary(disk, "v.json");
    ASSERT_FALSE(back.ok()) << length;
    EXPECT_EQ(back.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(back.error().where, "v.json");
  }
}

// Claim: a vocabulary that no import can have written is bad data: options out of their ranges, also those
// that wrap, features that are too long, counts that do not fit the documents.
TEST(VocabularyFile, RefusesWhatNoImportWrites) {
  host::SimDisk disk;
  text::FeaturizerState state;
  state.features = {"deer", "owl"};
  state.document_frequency = {4, 1};
  state.documents = 4;
  ASSERT_TRUE(write_vocabulary(disk, "v.json", state).ok());
  const auto good = nlohmann::json::parse(*host::read_text(disk, "v.json"));
  const auto read_with = [&](const char* place, const nlohmann::json& value) {
    nlohmann::json json = good;
    json[nlohmann::json::json_pointer(place)] = value;
    EXPECT_TRUE(host::replace_file(disk, "v.json", json.dump()).ok());
    return read_vocabulary(disk, "v.json");
  };
  EXPECT_TRUE(read_with("/documents", 4).ok());
  for (const auto& [place, value] : std::vector<std::pair<const char*, nlohmann::json>>{
           {"/documents", 3},
           {"/document_frequency/1", 0},
           {"/options/subword_min", 1},
           {"/options/subword_max", 17},
           {"/options/subword_max", -1},
           {"/options/max_features", 0},
           {"/options/max_features", 4294967295U},
           {"/features/1", std::string(129, 'x')},
           {"/features/1", std::string(500, 'x')},
       }) {
    const auto read = read_with(place, value);
    ASSERT_FALSE(read.ok()) << place << " " << value;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(read.error().where, "v.json");
  }
}

}  // namespace
}  // namespace gossamer::commands
