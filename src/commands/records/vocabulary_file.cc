// SPDX-License-Identifier: Apache-2.0
#include "commands/records/vocabulary_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include "host/api/files.h"
#include "json/read_json.h"

namespace gossamer::commands {
namespace {

using PlainJson = nlohmann::json;

Error damaged_vocabulary(const std::string& path, std::string got) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "cannot read the vocabulary of the imported text",
          .got = std::move(got),
          .expected = "the file as the import wrote it",
          .fix = "remove the directory that holds it and run again"};
}

// Reads a vocabulary. Throws a library exception for JSON of another form than that of a vocabulary.
text::FeaturizerState from_json(const PlainJson& json) {
  text::FeaturizerState state;
  const PlainJson& options = json.at("options");
  state.options = {.stems = options.at("stems").get<bool>(),
                   .subword_min = options.at("subword_min").get<std::uint32_t>(),
                   .subword_max = options.at("subword_max").get<std::uint32_t>(),
                   .min_document_frequency = options.at("min_document_frequency").get<std::uint32_t>(),
                   .max_features = options.at("max_features").get<std::uint32_t>(),
                   .stem_weight = options.at("stem_weight").get<float>(),
                   .subword_weight = options.at("subword_weight").get<float>()};
  state.documents = json.at("documents").get<std::uint64_t>();
  state.features = json.at("features").get<std::vector<std::string>>();
  state.document_frequency = json.at("document_frequency").get<std::vector<std::uint32_t>>();
  return state;
}

}  // namespace

Result<void> write_vocabulary(host::Disk& disk, const std::string& path, const text::FeaturizerState& state) {
  const text::FeaturizerOptions& o = state.options;
  const PlainJson json = {{"options",
                           {{"stems", o.stems},
                            {"subword_min", o.subword_min},
                            {"subword_max", o.subword_max},
                            {"min_document_frequency", o.min_document_frequency},
                            {"max_features", o.max_features},
                            {"stem_weight", o.stem_weight},
                            {"subword_weight", o.subword_weight}}},
                          {"documents", state.documents},
                          {"features", state.features},
                          {"document_frequency", state.document_frequency}};
  return host::replace_file(disk, path, json.dump());
}

Result<std::optional<text::FeaturizerState>> read_vocabulary(host::Disk& disk, const std::string& path) {
  auto there = disk.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return std::optional<text::FeaturizerState>();
  auto text = host::read_text(disk, path);
  if (!text.ok()) return text.error();
  text::FeaturizerState state;
  try {
    const auto json = read_json<PlainJson>(*text);
    if (json.is_discarded()) return damaged_vocabulary(path, "no JSON, or JSON that is nested too deeply");
    state = from_json(json);
  } catch (const PlainJson::exception& error) {
    return damaged_vocabulary(path, error.what());
  }
  const std::set<std::string_view> distinct(state.features.begin(), state.features.end());
  if (state.features.size() != state.document_frequency.size() || distinct.size() != state.features.size()) {
    return damaged_vocabulary(path, "features that are not distinct, or not counted");
  }
  if (!text::in_range(state.options)) return damaged_vocabulary(path, "an option out of its range");
  if (!std::ranges::all_of(state.features, text::can_be_feature))
    return damaged_vocabulary(path, "a feature that is too long");
  const auto counted = [&state](std::uint32_t times) { return times > 0 && times <= state.documents; };
  if (!std::ranges::all_of(state.document_frequency, counted))
    return damaged_vocabulary(path, "a feature in more documents than there are, or in none");
  return std::optional(std::move(state));
}

}  // namespace gossamer::commands
