// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_queries.h"

#include <fmt/format.h>
#include <gossamer/sparse_serving.pb.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/label_lists.h"
#include "engines/sparse/fleet/query_rows.h"
#include "engines/sparse/row_search.h"

namespace gossamer::engine {
namespace {

// Larger messages would hold up what is small and urgent.
constexpr std::uint64_t kBulkBytes = 1ULL << 20;

std::size_t width_of(const host::Range& range) { return range.end - range.begin; }

Error wrong_answer(NodeId node, std::string what) {
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("node {}", node.value),
          .what = "a node's answer cannot be used",
          .got = std::move(what),
          .expected = "its part of the answer",
          .fix = "look whether all nodes run the same version"};
}

// Of a block. What is told of them fits into a message.
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

FleetQueries::FleetQueries(FleetShape shape, std::size_t instances)
    : shape_(std::move(shape)), instances_(instances) {}

void FleetQueries::ask(const Block& block) {
  const data::SparseRows& rows = block.rows;
  CHECK(rows.rows() >= 1 && rows.rows() <= kQueryBlock && block.labels >= 1, rows.rows(), block.labels);
  given_ = {write_query_rows(rows)};
  queries_ = rows.rows();
  labels_ = block.labels;
  fused_.reset();
  if (block.neighbours > 0) {
    CHECK(block.neighbours <= kMaxListed && block.compared.size() == rows.value.size(), block.neighbours);
    fused_.emplace(FusedBlock::Shape{.rows = instances_, .labels = shape_.network.labels},
                   data::SparseRows{rows.begin, rows.index, block.compared}, block.neighbours);
  }
  layer_ = 0;
  under_way_ = true;
  answer_.reset();
  ask_round();
}

// Nobody is asked as long as somebody is missing.
void FleetQueries::ask_round() {
  if (!under_way_ || !whole_) return;
  ++number_;
  sparse_serving::Body body;
  sparse_serving::Question& question = *body.mutable_question();
  question.set_number(number_);
  question.set_epoch(epoch_.value);
  question.set_layer(static_cast<std::uint32_t>(layer_));
  question.set_queries(static_cast<std::uint32_t>(queries_));
  if (layer_ == shape_.layers()) {
    question.set_labels(static_cast<std::uint32_t>(labels_));
    if (fused_) question.set_neighbours(static_cast<std::uint32_t>(fused_->neighbours()));
  }
  for (auto& [node, ready] : ready_) {
    ready.answer.reset();
    Sending& sending = out_.emplace_back();
    sending.to = ready.peer;
    sending.message = {
        .channel = kQueryChannel, .body = body.SerializeAsString(), .payload = question_for(ready)};
    if (net::counted_bytes(sending.message) > kBulkBytes) sending.lane = host::Lane::kBulk;
  }
}

// Labels of rows are asked of those that hold them, all else of everybody.
Slices FleetQueries::question_for(const Ready& ready) const {
  if (layer_ == shape_.layers() + 1) return {fused_->rows_of(ready.part.rows)};
  return given_;
}

void FleetQueries::on(net::PeerId from, const net::Message& message) {
  sparse_serving::Body body;
  if (!body.ParseFromString(message.body)) return;
  if (body.has_ready()) {
    auto part = read_part(body.ready().part(), shape_);
    if (part) return on_ready(from, Epoch(body.ready().epoch()), *std::move(part));
  }
  const auto found = ready_.find(from.node);
  const bool asked = under_way_ && whole_ && body.has_answer() && body.answer().number() == number_ &&
                     found != ready_.end() && found->second.peer == from && !found->second.answer;
  if (!asked) return;
  const auto expected = answer_bytes(found->second.part);
  if (expected && total_bytes(message.payload) != *expected)
    return end(wrong_answer(from.node, fmt::format("{} bytes", total_bytes(message.payload))));
  found->second.answer = message.payload;
  const auto missing = [](const auto& one) { return !one.second.answer; };
  if (std::ranges::none_of(ready_, missing)) round_done();
}

void FleetQueries::on_ready(net::PeerId from, Epoch epoch, sparse::NetworkPart part) {
  if (epoch < epoch_) return;
  if (epoch_ < epoch) ready_.clear();
  epoch_ = epoch;
  ready_[from.node] = {.peer = from, .part = std::move(part), .answer = {}};
  Pieces held;
  std::size_t holdings = 0;
  for (const auto& [node, ready] : ready_) {
    const Pieces own = pieces_of(shape_, ready.part);
    holdings += own.size();
    held.insert(own.begin(), own.end());
  }
  whole_ = holdings == held.size() && held.size() == all_pieces(shape_);
  ask_round();
}

std::optional<std::uint64_t> FleetQueries::answer_bytes(const sparse::NetworkPart& part) const {
  if (layer_ < shape_.layers())
    return std::uint64_t{queries_} * width_of(columns_of(part, layer_)) * sizeof(float);
  if (layer_ == shape_.layers()) {
    return list_bytes(queries_, list_limit(part.rows, labels_)) +
           (fused_ ? fused_->found_bytes(part.rows) : 0);
  }
  if (layer_ == shape_.layers() + 1) return std::nullopt;
  return fused_->terms_bytes(part.rows);
}

void FleetQueries::round_done() {
  if (layer_ < shape_.layers()) return hidden_done();
  if (layer_ == shape_.layers()) return lists_done();
  if (layer_ == shape_.layers() + 1) return labels_done();
  terms_done();
}

void FleetQueries::hidden_done() {
  hidden_.assign(queries_ * hidden_stride(shape_, layer_), 0);
  for (const auto& [node, ready] : ready_) take_hidden(ready);
  ++layer_;
  given_ = {Slice::copy_of(std::as_bytes(std::span(hidden_)))};
  if (layer_ == shape_.layers() && fused_) given_.push_back(fused_->compared());
  ask_round();
}

// A number that is not finite may be the query's own: then there is nothing to be found for it.
void FleetQueries::take_hidden(const Ready& from) {
  const host::Range own = columns_of(from.part, layer_);
  const std::size_t width = width_of(own);
  const std::size_t stride = hidden_.size() / queries_;
  std::vector<float> values(queries_ * width);
  copy_front(*from.answer, std::as_writable_bytes(std::span(values)));
  for (std::size_t q = 0; q < queries_; ++q)
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(q * width), width,
                hidden_.begin() + static_cast<std::ptrdiff_t>(q * stride + own.begin));
}

void FleetQueries::lists_done() {
  net_.assign(queries_, {});
  for (const auto& [node, ready] : ready_) {
    if (auto taken = take_lists(ready); !taken.ok()) return end(wrong_answer(node, taken.error().message()));
  }
  for (std::vector<Scored>& list : net_) rank_list(labels_, list);
  if (!fused_) return end(Answer{.net = std::move(net_), .fused = {}});
  fused_->rank_found();
  ++layer_;
  ask_round();
}

Result<void> FleetQueries::take_lists(const Ready& from) {
  const std::size_t k = list_limit(from.part.rows, labels_);
  SliceReader reader(*from.answer);
  auto added = add_lists(reader.take(list_bytes(queries_, k)), k, from.part.rows, order_, net_);
  if (added.ok() && fused_) added = fused_->add_found(reader, from.part.rows);
  return added;
}

void FleetQueries::labels_done() {
  for (const auto& [node, ready] : ready_) {
    if (auto added = fused_->add_labels(*ready.answer, ready.part.rows); !added.ok())
      return end(wrong_answer(node, added.error().message()));
  }
  if (!fused_->gather(net_, kMostCandidates)) return end(too_many());
  ++layer_;
  given_.push_back(fused_->candidates());
  ask_round();
}

void FleetQueries::terms_done() {
  for (const auto& [node, ready] : ready_) fused_->add_terms(*ready.answer, ready.part.rows);
  end(Answer{.net = std::move(net_), .fused = std::exchange(fused_, std::nullopt)});
}

void FleetQueries::end(Result<Answer> answer) {
  under_way_ = false;
  answer_ = std::move(answer);
}

std::vector<FleetQueries::Sending> FleetQueries::take_out() { return std::exchange(out_, {}); }

std::optional<Result<FleetQueries::Answer>> FleetQueries::take_answer() {
  return std::exchange(answer_, std::nullopt);
}

}  // namespace gossamer::engine
