// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/block_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/label_lists.h"
#include "engines/sparse/predict/row_search.h"
#include "engines/sparse/serve/query_rows.h"

namespace gossamer::sparse_engine {
namespace {

// Labels ranked for one block of queries, at most. The members' terms for so many labels fit into a message.
constexpr std::size_t kMostCandidates = std::size_t{1} << 25;

Error too_many() {
  return {.kind = ErrorKind::kRefused,
          .where = "prediction",
          .what = "too many labels to rank at once",
          .got = fmt::format("more than {} of a block of queries", kMostCandidates),
          .expected = "fewer",
          .fix = "ask fewer queries together"};
}

}  // namespace

Error wrong_answer(NodeId node, std::string what) {
  return {.where = fmt::format("node {}", node.value),
          .what = "a node's answer cannot be used",
          .got = std::move(what),
          .expected = "its part of the answer",
          .fix = "look whether all nodes run the same version"};
}

BlockRounds::BlockRounds(ModelInParts model, const Block& block)
    : shape_(std::move(model.shape)),
      order_(std::move(model.order)),
      queries_(block.rows.rows()),
      labels_(block.labels) {
  const data::SparseRows& rows = block.rows;
  CHECK(queries_ >= 1 && queries_ <= kQueryBlock && labels_ >= 1, queries_, labels_);
  given_ = {write_query_rows(rows)};
  if (block.neighbours == 0) return;
  CHECK(block.neighbours <= kMaxListed && block.compared.size() == rows.value.size(), block.neighbours);
  fused_.emplace(FusedBlock::Shape{.rows = model.instances, .labels = shape_.network.labels},
                 data::SparseRows{rows.begin, rows.index, block.compared}, block.neighbours);
}

// The holders of rows are asked for their labels. Every other question is the same for all members.
std::vector<BlockRounds::Question> BlockRounds::write(const std::vector<Member>& members) {
  const bool of_rows = layer_ == shape_.layers() + 1;
  std::vector<Question> questions;
  for (const Member& member : members) {
    questions.push_back({.node = member.node,
                         .payload = of_rows ? Slices{fused_->rows_of(member.part->rows)} : given_,
                         .answer_bytes = answer_bytes(*member.part)});
  }
  return questions;
}

std::optional<std::uint64_t> BlockRounds::answer_bytes(const sparse::NetworkPart& part) const {
  if (layer_ < shape_.layers())
    return std::uint64_t{queries_} * columns_of(part, layer_).size() * sizeof(float);
  if (layer_ == shape_.layers()) {
    return list_bytes(queries_, list_limit(part.rows, labels_)) +
           (fused_ ? fused_->found_bytes(part.rows) : 0);
  }
  if (layer_ == shape_.layers() + 1) return std::nullopt;
  return fused_->terms_bytes(part.rows);
}

void BlockRounds::take(const std::vector<Member>& members) {
  if (layer_ < shape_.layers()) return take_hidden(members);
  if (layer_ == shape_.layers()) return take_lists(members);
  if (layer_ == shape_.layers() + 1) return take_labels(members);
  take_terms(members);
}

void BlockRounds::take_hidden(const std::vector<Member>& members) {
  hidden_.assign(queries_ * hidden_stride(shape_, layer_), 0);
  for (const Member& member : members) take_columns(member);
  ++layer_;
  given_ = {Slice::copy_of(std::as_bytes(std::span(hidden_)))};
  if (layer_ == shape_.layers() && fused_) given_.push_back(fused_->compared());
}

// A hidden vector may hold a number that is not finite, because the query itself overflows. Such a query
// finds nothing.
void BlockRounds::take_columns(const Member& from) {
  const host::Range own = columns_of(*from.part, layer_);
  const std::size_t width = own.size();
  const std::size_t stride = hidden_.size() / queries_;
  std::vector<float> values(queries_ * width);
  copy_front(from.answer, std::as_writable_bytes(std::span(values)));
  for (std::size_t q = 0; q < queries_; ++q)
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(q * width), width,
                hidden_.begin() + static_cast<std::ptrdiff_t>(q * stride + own.begin));
}

void BlockRounds::take_lists(const std::vector<Member>& members) {
  net_.assign(queries_, {});
  for (const Member& member : members) {
    if (const auto taken = take_list(member); !taken.ok()) {
      answer_ = wrong_answer(member.node, taken.error().message());
      return;
    }
  }
  for (std::vector<Scored>& list : net_) rank_list(labels_, list);
  if (!fused_) {
    answer_ = Answer{.net = std::move(net_), .fused = {}};
    return;
  }
  fused_->rank_found();
  ++layer_;
}

Result<void> BlockRounds::take_list(const Member& from) {
  const sparse::HeldRows& rows = from.part->rows;
  const std::size_t k = list_limit(rows, labels_);
  SliceReader reader(from.answer);
  auto added = add_lists(reader.take(list_bytes(queries_, k)), k, rows, order_, net_);
  if (added.ok() && fused_) added = fused_->add_found(reader, rows);
  return added;
}

void BlockRounds::take_labels(const std::vector<Member>& members) {
  for (const Member& member : members) {
    if (const auto added = fused_->add_labels(member.answer, member.part->rows); !added.ok()) {
      answer_ = wrong_answer(member.node, added.error().message());
      return;
    }
  }
  if (!fused_->has_labels()) return;  // the labels that did not fit are asked for again
  if (!fused_->gather(net_, kMostCandidates)) {
    answer_ = too_many();
    return;
  }
  ++layer_;
  given_.push_back(fused_->candidates());
}

void BlockRounds::take_terms(const std::vector<Member>& members) {
  for (const Member& member : members) fused_->add_terms(member.answer, member.part->rows);
  answer_ = Answer{.net = std::move(net_), .fused = std::exchange(fused_, std::nullopt)};
}

}  // namespace gossamer::sparse_engine
