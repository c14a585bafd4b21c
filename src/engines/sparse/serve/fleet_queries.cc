// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/fleet_queries.h"

#include <fmt/format.h>
#include <gossamer/sparse_serving.pb.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/layout_message.h"

namespace gossamer::sparse_engine {
namespace {

// Around the payload of an answer.
constexpr std::uint64_t kMostAnswerBody = 256;

}  // namespace

// A block and its next questions. While there is Work on it, only the Work uses it.
struct FleetQueries::Bench {
  BlockRounds rounds;
  std::vector<BlockRounds::Question> questions;
};

void FleetQueries::ask(const Block& block) {
  block_ = std::make_shared<Bench>(Bench{.rounds = {model_, block}, .questions = {}});
  waiting_ = false;
  wanted_ = {};
  answer_.reset();
  want_questions();
}

// No member is asked while a part is missing.
void FleetQueries::want_questions() {
  if (block_ == nullptr || !whole_ || working_) return;
  std::vector<BlockRounds::Member> members;
  for (const auto& [node, ready] : ready_) members.push_back({.node = node, .part = ready.part});
  at_ = block_;
  written_for_ = changes_;
  wanted_ = [bench = block_, members = std::move(members)] {
    bench->questions = bench->rounds.write(members);
  };
}

// All members have answered. The taken round is done, whatever members come and go. The next round is written
// for the members that are there now. Mostly they are the ones that are then asked.
void FleetQueries::want_next() {
  CHECK(!working_ && !wanted_);
  waiting_ = false;
  std::vector<BlockRounds::Member> members;
  for (auto& [node, ready] : ready_)
    members.push_back({.node = node, .part = ready.part, .answer = std::move(*ready.answer)});
  at_ = block_;
  written_for_ = changes_;
  wanted_ = [bench = block_, members = std::move(members)] {
    bench->rounds.take(members);
    bench->questions.clear();
    if (!bench->rounds.done()) bench->questions = bench->rounds.write(members);
  };
}

FleetQueries::Work FleetQueries::take_work() {
  if (working_ || !wanted_) return {};
  working_ = true;
  return std::exchange(wanted_, {});
}

void FleetQueries::worked() {
  CHECK(working_);
  working_ = false;
  const std::shared_ptr<Bench> at = std::exchange(at_, nullptr);
  if (block_ == nullptr) return;
  if (at == block_ && block_->rounds.done()) return end(block_->rounds.take_answer());
  if (at == block_ && written_for_ == changes_) return ask_round();
  want_questions();
}

void FleetQueries::ask_round() {
  ++number_;
  waiting_ = true;
  const BlockRounds& rounds = block_->rounds;
  sparse_serving::Body body;
  sparse_serving::Question& question = *body.mutable_question();
  question.set_number(number_);
  question.set_epoch(epoch_.value);
  question.set_layer(static_cast<std::uint32_t>(rounds.layer()));
  question.set_queries(static_cast<std::uint32_t>(rounds.queries()));
  question.set_labels(static_cast<std::uint32_t>(rounds.labels()));
  question.set_neighbours(static_cast<std::uint32_t>(rounds.neighbours()));
  for (BlockRounds::Question& each : block_->questions) {
    Ready& ready = ready_[each.node];
    ready.answer.reset();
    ready.answer_bytes = each.answer_bytes;
    Sending& sending = out_.emplace_back();
    sending.to = ready.peer;
    sending.message = {
        .channel = kQueryChannel, .body = body.SerializeAsString(), .payload = std::move(each.payload)};
    sending.most_answer_bytes = kMostAnswerBody + each.answer_bytes.value_or(2 * kMostLabelBytes);
    if (net::counted_bytes(sending.message) > host::kBulkBytes) sending.lane = host::Lane::kBulk;
  }
}

namespace {

Error wrong_message(net::PeerId from, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("node {}", from.node.value),
          .what = "a member said of its part what cannot be",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether it runs this version"};
}

}  // namespace

// A decision that cannot be read is none of a layout: the run has failed.
void FleetQueries::placed(Epoch epoch, const std::string& decision) {
  if (auto layout = read_layout(decision, model_.shape); layout.ok())
    placed_ = Placed{.epoch = epoch, .layout = *std::move(layout)};
}

Result<void> FleetQueries::on(net::PeerId from, const net::Message& message) {
  sparse_serving::Body body;
  if (!body.ParseFromString(message.body)) {
    return wrong_message(from, fmt::format("{} bytes that are no message", message.body.size()),
                         "a message of docs/protocols/sparse-serving.md");
  }
  if (body.has_ready()) return on_ready(from, body.ready());
  const auto found = ready_.find(from.node);
  const bool asked = waiting_ && body.has_answer() && body.answer().number() == number_ &&
                     found != ready_.end() && found->second.peer == from && !found->second.answer;
  if (!asked) return {};
  const std::uint64_t bytes = total_bytes(message.payload);
  if (bytes != found->second.answer_bytes.value_or(bytes)) {
    const Error wrong = wrong_answer(from.node, fmt::format("{} bytes", bytes));
    end(wrong);
    return wrong;
  }
  found->second.answer = message.payload;
  const auto missing = [](const auto& one) { return !one.second.answer; };
  if (std::ranges::none_of(ready_, missing)) want_next();
  return {};
}

// A member may be late, but it cannot be ahead of the layout, nor hold another part than the layout says.
Result<void> FleetQueries::on_ready(net::PeerId from, const sparse_serving::Ready& ready) {
  auto part = read_part(ready.part(), model_.shape);
  if (!part) return wrong_message(from, "a part that cannot be", "a part of this model");
  const Epoch epoch(ready.epoch());
  const Epoch newest = placed_ ? placed_->epoch : Epoch();
  if (newest < epoch) {
    return wrong_message(from, fmt::format("epoch {}", epoch.value), fmt::format("at most {}", newest.value));
  }
  if (epoch < newest) return {};
  const auto rank = placed_ ? placed_->layout.rank_of(from.node) : std::nullopt;
  const auto pieces = [this](const sparse::NetworkPart& one) { return pieces_of(model_.shape, one); };
  if (!rank || pieces(placed_->layout.members[*rank].after) != pieces(*part))
    return wrong_message(from, "the part of another", "the part that the layout gives to it");
  on_part(from, epoch, *std::move(part));
  return {};
}

void FleetQueries::on_part(net::PeerId from, Epoch epoch, sparse::NetworkPart part) {
  if (epoch < epoch_) return;
  if (epoch_ < epoch) ready_.clear();
  epoch_ = epoch;
  ready_[from.node] = {.peer = from,
                       .part = std::make_shared<const sparse::NetworkPart>(std::move(part)),
                       .answer_bytes = {},
                       .answer = {}};
  ++changes_;
  Pieces held;
  std::size_t holdings = 0;
  for (const auto& [node, ready] : ready_) {
    const Pieces own = pieces_of(model_.shape, *ready.part);
    holdings += own.size();
    held.insert(own.begin(), own.end());
  }
  whole_ = holdings == held.size() && held.size() == all_pieces(model_.shape);
  waiting_ = false;
  // If all answers are there, the round is not asked anew: the wanted Work takes them first.
  if (!wanted_) want_questions();
}

std::set<NodeId> FleetQueries::nodes() const {
  std::set<NodeId> nodes;
  for (const auto& [node, ready] : ready_) nodes.insert(node);
  return nodes;
}

void FleetQueries::end(Result<Answer> answer) {
  block_.reset();
  waiting_ = false;
  answer_ = std::move(answer);
}

std::vector<FleetQueries::Sending> FleetQueries::take_out() { return std::exchange(out_, {}); }

std::optional<Result<FleetQueries::Answer>> FleetQueries::take_answer() {
  return std::exchange(answer_, std::nullopt);
}

}  // namespace gossamer::sparse_engine
