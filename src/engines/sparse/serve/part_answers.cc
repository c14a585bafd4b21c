// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/part_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engines/sparse/fleet/step/label_lists.h"
#include "engines/sparse/fleet/step/payload_values.h"
#include "engines/sparse/fleet/step/row_lists.h"
#include "engines/sparse/model/fusion_options.h"
#include "engines/sparse/serve/query_rows.h"

namespace gossamer::sparse_engine {
namespace {

Error wrong_question(std::string_view what) {
  return {.kind = ErrorKind::kBadData,
          .where = "serving",
          .what = "the lead asked what cannot be answered",
          .got = std::string(what),
          .expected = "a question about the model that this node was told of",
          .fix = "look whether all nodes run the same version"};
}

}  // namespace

PartAnswers::PartAnswers(const Options& options, const sparse::Network& network,
                         std::optional<InstancePart> instances)
    : shape_(options.shape),
      network_(network),
      kernels_(options.kernels),
      most_label_bytes_(options.most_label_bytes),
      scorer_(network_, options.activation, options.kernels, options.compute) {
  if (!instances) return;
  instances_ = std::make_unique<InstanceScorer>(
      *std::move(instances), IndexShape{.features = shape_.network.features, .labels = shape_.network.labels},
      shape_.network.last_hidden(), options.kernels, options.compute);
}

Result<std::vector<std::byte>> PartAnswers::answer(const sparse_serving::Question& asked,
                                                   const Slices& payload) {
  const std::size_t queries = asked.queries();
  const std::size_t layers = shape_.layers();
  const std::size_t last = instances_ != nullptr ? layers + 2 : layers;
  if (queries < 1 || queries > kQueryBlock || asked.layer() > last)
    return wrong_question(fmt::format("layer {} for {} queries", asked.layer(), queries));
  if (asked.layer() < layers) return hidden(asked, payload);
  if (asked.layer() == layers) return lists(asked, SliceReader(payload));
  if (asked.layer() == layers + 1) return labels(payload);
  return terms(queries, SliceReader(payload));
}

bool PartAnswers::take_layer(SliceReader& reader, AlignedArray<float>& layer) const {
  const auto bytes = std::as_writable_bytes(layer.span());
  if (reader.left() < bytes.size()) return false;
  copy_front(reader.take(bytes.size()), bytes);
  return true;
}

Result<std::vector<std::byte>> PartAnswers::hidden(const sparse_serving::Question& asked,
                                                   const Slices& payload) {
  const std::size_t layer = asked.layer();
  const std::size_t queries = asked.queries();
  AlignedArray<float> out(queries * hidden_stride(shape_, layer));
  if (layer == 0) {
    const auto given = read_query_rows(payload, queries, shape_.network.features);
    if (!given) return wrong_question("queries that do not fit");
    scorer_.embed(given->view(), {out.data(), hidden_stride(shape_, 0)});
    return columns(layer, queries, out);
  }
  const std::size_t stride = hidden_stride(shape_, layer - 1);
  AlignedArray<float> in(queries * stride);
  SliceReader reader(payload);
  if (!take_layer(reader, in) || reader.left() > 0) return wrong_question("a hidden layer of another size");
  scorer_.deepen(layer, queries, {in.data(), stride}, {out.data(), hidden_stride(shape_, layer)});
  return columns(layer, queries, out);
}

std::vector<std::byte> PartAnswers::columns(std::size_t layer, std::size_t queries,
                                            const AlignedArray<float>& out) const {
  const host::Range own = columns_of(network_.part, layer);
  const std::size_t stride = hidden_stride(shape_, layer);
  std::vector<std::byte> bytes;
  bytes.reserve(queries * own.size() * sizeof(float));
  for (std::size_t q = 0; q < queries; ++q)
    append_values(out.span().subspan(q * stride + own.begin, own.size()), bytes);
  return bytes;
}

Result<std::vector<std::byte>> PartAnswers::lists(const sparse_serving::Question& asked, SliceReader reader) {
  const std::size_t queries = asked.queries();
  const std::size_t neighbours = asked.neighbours();
  if (asked.labels() < 1 || asked.labels() > shape_.network.labels)
    return wrong_question(fmt::format("{} labels", asked.labels()));
  if (neighbours > kMaxListed || (neighbours > 0 && instances_ == nullptr))
    return wrong_question(fmt::format("{} training records", neighbours));
  const std::size_t stride = hidden_stride(shape_, shape_.layers() - 1);
  AlignedArray<float> layer(queries * stride);
  if (!take_layer(reader, layer)) return wrong_question("a hidden layer of another size");
  const QueryMatrix hidden{.values = layer.data(), .stride = stride, .count = queries};
  if (neighbours == 0) {
    if (reader.left() > 0) return wrong_question("a hidden layer of another size");
    return label_lists(hidden, asked.labels());
  }
  const auto compared = take_query_rows(reader, queries, shape_.network.features);
  if (!compared || reader.left() > 0) return wrong_question("queries that do not fit");
  std::vector<std::byte> bytes = label_lists(hidden, asked.labels());
  instances_->search(compared->view(), hidden, neighbours);
  append_row_lists(queries, neighbours, bytes);
  return bytes;
}

std::vector<std::byte> PartAnswers::label_lists(const QueryMatrix& hidden, std::size_t labels) {
  const std::size_t k = list_limit(network_.part.rows, labels);
  std::vector<std::byte> bytes;
  if (k == 0) return bytes;
  scorer_.search(hidden, k);
  bytes.reserve(list_bytes(hidden.count, k));
  std::vector<Scored> list;
  for (std::size_t q = 0; q < hidden.count; ++q) {
    list.clear();
    scorer_.found(q, list);
    append_list(list, k, bytes);
  }
  return bytes;
}

void PartAnswers::append_row_lists(std::size_t queries, std::size_t neighbours,
                                   std::vector<std::byte>& bytes) {
  const std::size_t k = std::min(neighbours, instances_->rows());
  for (std::size_t q = 0; q < queries; ++q) append_rows(instances_->by_input(q), k, RankedBy::kInput, bytes);
  for (std::size_t q = 0; q < queries; ++q)
    append_rows(instances_->by_hidden(q), k, RankedBy::kHidden, bytes);
}

Result<std::vector<std::byte>> PartAnswers::labels(const Slices& payload) const {
  if (total_bytes(payload) % sizeof(std::uint32_t) != 0) return wrong_question("records that do not fit");
  std::vector<std::uint32_t> rows(total_bytes(payload) / sizeof(std::uint32_t));
  copy_front(payload, std::as_writable_bytes(std::span(rows)));
  if (std::ranges::adjacent_find(rows, std::ranges::greater_equal()) != rows.end())
    return wrong_question("records that do not rise");
  OwnedLabelSets sets{.begin = {0}, .label = {}};
  for (const std::uint32_t row : rows) {
    const auto own = instances_->labels_of(row);
    if (!own) return wrong_question(fmt::format("record {}, which is not here", row));
    // The lead asks again for the other records.
    const std::uint64_t with_it = (2 + sets.begin.size() + sets.label.size() + own->size()) * sizeof(row);
    if (with_it > most_label_bytes_ && sets.begin.size() > 1) break;
    sets.label.insert(sets.label.end(), own->begin(), own->end());
    sets.begin.push_back(static_cast<std::uint32_t>(sets.label.size()));
  }
  const auto count = static_cast<std::uint32_t>(sets.begin.size() - 1);
  std::vector<std::byte> bytes;
  bytes.reserve((1 + sets.begin.size() + sets.label.size()) * sizeof(std::uint32_t));
  append_values(std::span(&count, 1), bytes);
  append_values(std::span<const std::uint32_t>(sets.begin), bytes);
  append_values(std::span<const std::uint32_t>(sets.label), bytes);
  return bytes;
}

Result<std::vector<std::byte>> PartAnswers::terms(std::size_t queries, SliceReader reader) {
  const std::size_t stride = hidden_stride(shape_, shape_.layers() - 1);
  AlignedArray<float> layer(queries * stride);
  if (!take_layer(reader, layer)) return wrong_question("a hidden layer of another size");
  const auto compared = take_query_rows(reader, queries, shape_.network.features);
  if (!compared) return wrong_question("queries that do not fit");
  const auto labels = read_label_sets(reader, queries, shape_.network.labels);
  if (!labels) return wrong_question("labels that do not fit");
  std::vector<std::int64_t> sums(labels->label.size());
  instances_->sum(compared->view(), labels->view(), sums);
  std::vector<std::byte> bytes;
  append_values(std::span<const std::int64_t>(sums), bytes);
  for (std::size_t q = 0; q < queries; ++q) {
    for (const std::uint32_t label : labels->view().row(q)) {
      const std::uint32_t row = network_.order.row_of(label);
      if (!network_.part.rows.contains(row)) continue;
      // The score as Fusion computes it in one process.
      const float score =
          dot(kernels_, network_.output.weights(row), layer.data() + q * stride, network_.output.stride()) +
          network_.bias[row];
      const std::array term{score, instances_->inverse_length(label)};
      append_values(std::span<const float>(term), bytes);
    }
  }
  return bytes;
}

}  // namespace gossamer::sparse_engine
