// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, mostly half right, as messages to a lead from the holders of a model's parts, and as questions
// to a member. They also come before the parts are placed, and while something is computed. Nothing crashes.
// Accepted queries have only existing features, and accepted lists of labels rise. An answer has only
// existing labels, best first. Nobody has a part before one is placed.
#include <gossamer/sparse_serving.pb.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "engines/sparse/predict/fusion.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "engines/sparse/serve/query_rows.h"

namespace {

using namespace gossamer;
using namespace gossamer::sparse_engine;

FleetShape shape() {
  return {.network = {.features = 60, .labels = 40, .hidden = 48, .dense = {32}}, .shard_shift = 4};
}

void take_rows(const std::string& bytes) {
  const auto rows = read_query_rows({Slice::of(bytes)}, 2, 60);
  if (!rows) return;
  CHECK(rows->view().rows() == 2);
  for (std::size_t q = 0; q < 2; ++q) {
    for (const std::uint32_t feature : rows->view().row(q).index) CHECK(feature < 60, feature);
  }
  CHECK(joined({write_query_rows(rows->view())}) == bytes);
}

void take_labels(const std::string& bytes) {
  SliceReader reader({Slice::of(bytes)});
  const auto sets = read_label_sets(reader, 2, 60);
  if (!sets) return;
  for (std::size_t q = 0; q < 2; ++q) {
    const auto set = sets->view().row(q);
    CHECK(std::ranges::is_sorted(set) && (set.empty() || set.back() < 60));
  }
  CHECK(joined({write_label_sets(sets->view())}) == bytes);
}

net::PeerId member(fuzz::Choices& choices) {
  return {NodeId(2 + choices.below(3)), Incarnation(choices.below(2))};
}

std::string ready(fuzz::Choices& choices) {
  sparse_serving::Body body;
  body.mutable_ready()->set_epoch(choices.number());
  sparse_fleet::Part& part = *body.mutable_ready()->mutable_part();
  const bool all = choices.flip();
  part.mutable_columns()->set_end(all ? 48 : 16 * choices.below(5));
  part.add_units()->set_end(all ? 32 : 32 * choices.below(3));
  for (std::size_t shard = 0; shard < 3; ++shard) {
    if (all || choices.flip()) part.add_shards(shard);
  }
  return body.SerializeAsString();
}

// One member has all of it, mostly.
std::string layout(fuzz::Choices& choices) {
  if (choices.below(8) == 0) return choices.text(80);
  Layout out;
  const NodeId holder(2 + choices.below(3));
  for (const NodeId node : {NodeId(2), NodeId(3), NodeId(4)}) {
    LayoutMember& member = out.members.emplace_back();
    member.node = node;
    member.after = no_part(shape());
    if (node != holder) continue;
    member.after = with_shards(member.after, shape(), {0, 1, 2});
    columns_of(member.after, 0) = {0, 48};
    columns_of(member.after, 1) = {0, 32};
  }
  return write_layout(out);
}

// An answer, mostly of the wanted size.
net::Message answer(fuzz::Choices& choices, std::uint64_t number) {
  sparse_serving::Body body;
  body.mutable_answer()->set_number(choices.below(8) == 0 ? choices.number() : number);
  // Hidden layers; lists by the net and fused; labels of no, three and five rows; terms of five labels.
  constexpr std::size_t kSizes[] = {
      2 * 48 * 4, 2 * 32 * 4, 2 * 5 * 8,  2 * 16 * 4, 2 * 5 * 8 + 2 * 2 * 3 * 12,
      2 * 4,      5 * 4,      7 * 4 + 20, 5 * 16};
  std::string payload = choices.text(2 * 48 * 4);
  if (choices.below(8) != 0) payload.resize(kSizes[choices.below(std::size(kSizes))]);
  return {.channel = kQueryChannel, .body = body.SerializeAsString(), .payload = {Slice::of(payload)}};
}

// Scores of a liar may have no order. The labels exist in any case.
void check(const FleetQueries::Answer& answer) {
  for (std::size_t q = 0; q < answer.net.size(); ++q) {
    const std::vector<Scored>& list = answer.net[q];
    CHECK(std::ranges::is_sorted(list, ranks_before) && list.size() <= 5, list.size());
    for (const Scored& one : list) CHECK(one.id < 40, one.id);
    if (!answer.fused) continue;
    Fusion fusion({}, PredictParts(), Fusion::Sources());
    std::vector<Scored> out(10);
    out.resize(answer.fused->rank(fusion, {}, q, list, out));
    for (const Scored& one : out) CHECK(one.id < 40, one.id);
  }
}

void ask(fuzz::Choices& choices) {
  FleetQueries queries({.shape = shape(), .instances = 9});
  bool placed = false;
  const QueryRows rows{.begin = {0, 1, 2}, .index = {3, 7}, .value = {1, 2}};
  const FleetQueries::Block alone{.rows = rows.view(), .labels = 5};
  const FleetQueries::Block fused{.rows = rows.view(), .labels = 5, .compared = rows.value, .neighbours = 3};
  queries.ask(choices.flip() ? fused : alone);
  std::uint64_t number = 1;
  FleetQueries::Work working;  // under way
  while (choices.left()) {
    const net::PeerId from = member(choices);
    if (choices.below(8) == 0) {
      queries.placed(Epoch(1 + choices.below(4)), layout(choices));
      placed = true;
    }
    net::Message said = answer(choices, number);
    if (choices.below(4) == 0) said = {.channel = kQueryChannel, .body = choices.text(80), .payload = {}};
    if (choices.below(4) == 0) said = {.channel = kQueryChannel, .body = ready(choices), .payload = {}};
    (void)queries.on(from, said);
    CHECK(placed || queries.members() == 0);
    // Many messages may come while something is computed.
    if (!working) working = queries.take_work();
    if (working && choices.below(4) != 0) {
      std::exchange(working, {})();
      queries.worked();
    }
    for (const FleetQueries::Sending& sent : queries.take_out()) {
      sparse_serving::Body body;
      CHECK(body.ParseFromString(sent.message.body) && body.has_question());
      number = body.question().number();
    }
    const auto answer = queries.take_answer();
    if (!answer) continue;
    if (answer->ok()) check(**answer);
    queries.ask(choices.flip() ? fused : alone);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  take_rows(bytes);
  take_labels(bytes);
  fuzz::Choices choices(data, size);
  ask(choices);
  return 0;
}
