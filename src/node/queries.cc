// SPDX-License-Identifier: Apache-2.0
#include "node/queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "learn/data/byte_source.h"
#include "learn/data/jsonl_reader.h"

namespace gossamer::node {
namespace {

Error bad(const std::string& place, std::size_t column, std::string_view got) {
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("{}:{}", place, column + 1),
          .what = "cannot read a feature of the query",
          .got = fmt::format("'{}'", got.substr(0, 40)),
          .expected = "INDEX:VALUE pairs such as '3:0.5 17:1.2', each index once",
          .fix = "mend the query"};
}

Error not_text(bool features) {
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = features ? "the model reads text, not numbered features" : "the model does not read text",
          .got = features ? R"({"features": ...})" : R"({"text": ...})",
          .expected = features ? R"(a text, or {"text": "..."})" : "INDEX:VALUE pairs such as '3:0.5 17:1.2'",
          .fix = "ask in the form that the model was trained on"};
}

// One token "17:1.2".
bool parse_pair(std::string_view token, std::pair<std::uint32_t, float>& out) {
  const std::size_t colon = token.find(':');
  if (colon == std::string_view::npos) return false;
  const char* middle = token.data() + colon;
  const char* end = token.data() + token.size();
  const auto index = std::from_chars(token.data(), middle, out.first);
  const auto value = std::from_chars(middle + 1, end, out.second);
  return index.ec == std::errc() && index.ptr == middle && value.ec == std::errc() && value.ptr == end &&
         std::isfinite(out.second);
}

}  // namespace

void QueryBlock::add(const data::SparseRow& row, std::uint32_t features,
                     const text::FeatureWeighting& weighting) {
  const std::size_t begin = index_.size();
  const auto known =
      static_cast<std::size_t>(std::ranges::lower_bound(row.index, features) - row.index.begin());
  index_.insert(index_.end(), row.index.begin(), row.index.begin() + static_cast<std::ptrdiff_t>(known));
  value_.resize(index_.size());
  weighting.apply({row.index.first(known), row.value.first(known)}, std::span(value_).subspan(begin));
  begin_.push_back(static_cast<std::uint32_t>(index_.size()));
}

void QueryBlock::clear() {
  begin_.assign(1, 0);
  index_.clear();
  value_.clear();
}

QueryParser::QueryParser(const engine::Model& model) : model_(model) {
  if (model.featurizer.has_value()) featurizer_.emplace(*model.featurizer);
}

Result<void> QueryParser::add(std::string_view line, const std::string& place, QueryBlock& block) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first != std::string_view::npos && line[first] == '{') return add_json(line, place, block);
  if (!reads_text()) return add_pairs(line, place, block);
  auto done = add_text(line, block);
  if (done.ok()) return {};
  Error error = done.error();
  if (error.where.empty()) error.where = place;
  return error;
}

Result<void> QueryParser::add_text(std::string_view text, QueryBlock& block) {
  if (!reads_text()) return not_text(false);
  auto row = featurizer_->features(text, scratch_);
  if (!row.ok()) return row.error();
  block.add(*row, static_cast<std::uint32_t>(model_.network.shape.features), model_.weighting);
  return {};
}

Result<void> QueryParser::add_json(std::string_view line, const std::string& place, QueryBlock& block) {
  const auto source = data::memory_source(place, line);
  const auto read = data::read_jsonl(
      *source, {.limits = {.chunk_bytes = 1 << 12}}, [&](const data::JsonlRecord& record) -> Result<void> {
        switch (record.kind) {
          case data::JsonlRecord::Kind::kText: return add_text(record.text, block);
          case data::JsonlRecord::Kind::kFeatures: break;
          case data::JsonlRecord::Kind::kNamedFeatures:
            return Error{.kind = ErrorKind::kUsage,
                         .where = place,
                         .what = "models keep no names of features",
                         .got = R"({"features": {"NAME": ...}})",
                         .expected = R"({"features": [[INDEX, VALUE], ...]})",
                         .fix = "use the numbers of the features"};
        }
        if (reads_text()) return not_text(true);
        block.add({record.index, record.value}, static_cast<std::uint32_t>(model_.network.shape.features),
                  model_.weighting);
        return {};
      });
  if (!read.ok()) return read.error();
  return {};
}

Result<void> QueryParser::add_pairs(std::string_view line, const std::string& place, QueryBlock& block) {
  std::vector<std::pair<std::uint32_t, float>> pairs;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    const std::string_view token = line.substr(at, end - at);
    std::pair<std::uint32_t, float> pair;
    const bool labels = at == 0 && token.find_first_not_of("0123456789,") == std::string_view::npos;
    if (!labels) {
      if (!parse_pair(token, pair)) return bad(place, at, token);
      pairs.push_back(pair);
    }
    at = end;
  }
  std::ranges::sort(pairs);
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  for (const auto& [feature, amount] : pairs) {
    if (!index.empty() && index.back() == feature) return bad(place, 0, fmt::format("{}: twice", feature));
    index.push_back(feature);
    value.push_back(amount);
  }
  block.add({index, value}, static_cast<std::uint32_t>(model_.network.shape.features), model_.weighting);
  return {};
}

}  // namespace gossamer::node
