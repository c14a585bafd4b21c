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

}  // namespace

FleetQueries::FleetQueries(FleetShape shape) : shape_(std::move(shape)) {}

void FleetQueries::ask(const data::SparseRows& queries, std::size_t labels) {
  CHECK(queries.rows() >= 1 && queries.rows() <= kQueryBlock && labels >= 1, queries.rows(), labels);
  given_ = {write_query_rows(queries)};
  queries_ = queries.rows();
  labels_ = labels;
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
  if (layer_ == shape_.layers()) question.set_labels(static_cast<std::uint32_t>(labels_));
  for (auto& [node, ready] : ready_) {
    ready.answer.reset();
    Sending& sending = out_.emplace_back();
    sending.to = ready.peer;
    sending.message = {.channel = kQueryChannel, .body = body.SerializeAsString(), .payload = given_};
    if (net::counted_bytes(sending.message) > kBulkBytes) sending.lane = host::Lane::kBulk;
  }
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
  if (total_bytes(message.payload) != answer_bytes(found->second.part))
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

std::uint64_t FleetQueries::answer_bytes(const sparse::NetworkPart& part) const {
  if (layer_ == shape_.layers()) return list_bytes(queries_, list_limit(part.rows, labels_));
  return std::uint64_t{queries_} * width_of(columns_of(part, layer_)) * sizeof(float);
}

void FleetQueries::round_done() {
  if (layer_ == shape_.layers()) {
    Lists lists(queries_);
    auto taken = take_lists(lists);
    return end(taken.ok() ? Result<Lists>(std::move(lists)) : taken.error());
  }
  hidden_.assign(queries_ * hidden_stride(shape_, layer_), 0);
  for (const auto& [node, ready] : ready_) take_hidden(ready);
  ++layer_;
  given_ = {Slice::copy_of(std::as_bytes(std::span(hidden_)))};
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

Result<void> FleetQueries::take_lists(Lists& lists) const {
  for (const auto& [node, ready] : ready_) {
    auto added =
        add_lists(*ready.answer, list_limit(ready.part.rows, labels_), ready.part.rows, order_, lists);
    if (!added.ok()) return wrong_answer(node, added.error().message());
  }
  for (std::vector<Scored>& list : lists) rank_list(labels_, list);
  return {};
}

void FleetQueries::end(Result<Lists> answer) {
  under_way_ = false;
  answer_ = std::move(answer);
}

std::vector<FleetQueries::Sending> FleetQueries::take_out() { return std::exchange(out_, {}); }

std::optional<Result<FleetQueries::Lists>> FleetQueries::take_answer() {
  return std::exchange(answer_, std::nullopt);
}

}  // namespace gossamer::engine
