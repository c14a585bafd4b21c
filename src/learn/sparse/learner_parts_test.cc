// SPDX-License-Identifier: Apache-2.0
//
// Learners that hold parts of one network, with the exchange between them done by copying. Together they must
// do what one learner does that holds all of it, with its output rows in no shards.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "learn/sparse/learner.h"
#include "learn/sparse/network/network_pieces.h"
#include "learn/sparse/test_random_problem.h"
#include "learn/sparse/test_reference_learner.h"

namespace gossamer::sparse {
namespace {

constexpr unsigned kShardShift = 3;
constexpr std::size_t kSamples = 40;

ProblemShape shape_of(const std::vector<std::size_t>& dense) {
  return {.network = {.features = 60, .labels = 150, .hidden = 116, .dense = dense},
          .samples = kSamples,
          .features_each = 6,
          .labels_each = 4,
          .unlabelled = true};
}

// The run of blocks that node `node` of `nodes` holds; the runs are as equal as can be.
host::Range blocks(std::size_t width, std::size_t block, std::size_t node, std::size_t nodes) {
  const host::Range range =
      host::worker_range(row_stride(width) / block, static_cast<int>(node), static_cast<int>(nodes));
  return {range.begin * block, range.end * block};
}

NetworkPart part_of(const NetworkShape& shape, std::size_t node, std::size_t nodes) {
  NetworkPart part = {.columns = blocks(shape.hidden, kColumnBlock, node, nodes),
                      .units = {},
                      .rows = {shape.labels, kShardShift}};
  for (const std::size_t units : shape.dense) part.units.push_back(blocks(units, kUnitBlock, node, nodes));
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (shard % nodes != node) part.rows.drop(shard);
  }
  return part;
}

LearnerOptions options() {
  return {.batch_max = kSamples,
          .dropout = 0.3,
          .negatives = {.kind = Negatives::kUniform, .sampled = 10},
          .logq = LogQ::kExact,
          .element = kernels::Element::kF32};
}

Network make_network(const NetworkShape& shape, NetworkPart part, TableMoments moments,
                     const LabelCounts& counts) {
  Network network(shape, std::move(part), moments);
  host::SimCompute compute({.workers = 1});
  network.order = RowOrder(counts.count, network.part.rows.shift());
  initialize(network, {.embedding_stddev = 0.5F, .output_stddev = 0.5F, .seed = 6},
             by_row(counts, network.order).count, compute);
  return network;
}

// One node: a part, and the learner that computes with it.
struct Node {
  Node(const NetworkShape& shape, NetworkPart part, TableMoments moments, const LabelCounts& counts,
       int workers)
      : compute({.workers = workers}),
        network(make_network(shape, std::move(part), moments, counts)),
        row_counts(by_row(counts, network.order)),
        learner({.network = network,
                 .labels = row_counts,
                 .kernels = kernels::kernels_for(kernels::best_isa()),
                 .compute = compute},
                options()) {}

  host::SimCompute compute;
  Network network;
  LabelCounts row_counts;
  Learner learner;
};

class Fleet {
 public:
  Fleet(const NetworkShape& shape, std::size_t nodes, TableMoments moments, const LabelCounts& counts) {
    for (std::size_t node = 0; node < nodes; ++node) {
      nodes_.push_back(std::make_unique<Node>(shape, part_of(shape, node, nodes), moments, counts,
                                              1 + static_cast<int>(node % 3)));
    }
  }

  double step(OwnedBatch samples, StepNumber step) {
    for (std::uint32_t& label : samples.label) label = order().row_of(label);
    const data::Batch batch = samples.view();
    const Company company = nodes_.size() == 1 ? Company::kAlone : Company::kOthers;
    // Every second node still has output rows of the step before to finish when it has embedded this one.
    for (std::size_t i = 1; i < nodes_.size(); i += 2) nodes_[i]->learner.embed_ahead(batch, step);
    finish_rows();
    for (auto& node : nodes_) node->learner.begin(batch, step, {.learning_rate = 0.01F}, company);
    for (auto& node : nodes_) node->learner.embed();
    // A node that has not listed by then does it in score().
    for (std::size_t i = 0; i < nodes_.size(); i += 2) nodes_[i]->learner.list();
    gather(0);
    const std::size_t deep = nodes_.front()->network.dense.size();
    for (std::size_t layer = 0; layer < deep; ++layer) {
      for (auto& node : nodes_) node->learner.deepen(layer);
      gather(layer + 1);
    }
    std::vector<PartitionShare> sums(kSamples);
    for (auto& node : nodes_) {
      node->learner.score();
      for (std::size_t i = 0; i < kSamples; ++i) add_share(sums[i], node->learner.state().shares[i]);
    }
    for (auto& node : nodes_) node->learner.normalise(sums);
    scatter(deep);
    for (std::size_t layer = deep; layer-- > 0;) {
      for (auto& node : nodes_) node->learner.descend(layer);
      scatter(layer);
    }
    double loss = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Learner& learner = nodes_[i]->learner;
      if (i % 2 == 1) learner.finish_columns();
      loss += i % 2 == 1 ? learner.loss() : learner.finish().loss;
    }
    unfinished_ = std::move(samples);
    return loss;
  }

  // Puts the network together, as one that holds everything, without moments and in the order of labels.
  void collect(Network& whole) {
    finish_rows();
    for (const auto& node : nodes_) {
      Network& from = node->network;
      for (std::size_t row = 0; row < whole.embedding.rows(); ++row) {
        std::copy_n(from.embedding.weights(row), from.embedding.width(),
                    whole.embedding.weights(row) + from.part.columns.begin);
      }
      for (std::size_t i = 0; i < whole.dense.size(); ++i) {
        for (std::size_t unit = 0; unit < from.dense[i].weights.rows(); ++unit) {
          const std::size_t to = from.part.units[i].begin + unit;
          std::copy_n(from.dense[i].weights.weights(unit), whole.dense[i].weights.stride(),
                      whole.dense[i].weights.weights(to));
          whole.dense[i].bias[to] = from.dense[i].bias[unit];
        }
      }
      for (std::uint32_t row = 0; row < whole.output.rows(); ++row) {
        if (!from.part.rows.contains(row)) continue;
        std::copy_n(from.output.weights(row), whole.output.stride(), whole.output.weights(row));
        whole.bias[row] = from.bias[row];
      }
    }
    whole.order = order();
    order_by_label(whole);
  }

  [[nodiscard]] const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }

 private:
  void finish_rows() {
    if (!unfinished_) return;
    for (std::size_t i = 1; i < nodes_.size(); i += 2) nodes_[i]->learner.finish_rows();
    unfinished_.reset();
  }
  [[nodiscard]] const RowOrder& order() const { return nodes_.front()->network.order; }
  // Gives every node all columns of h.
  void gather(std::size_t layer) {
    for (auto& from : nodes_) {
      const LayerState& own = from->learner.state().layers[layer];
      for (auto& to : nodes_) {
        if (to == from) continue;
        LayerState& other = to->learner.state().layers[layer];
        for (std::size_t sample = 0; sample < kSamples; ++sample) {
          std::copy_n(own.h.data() + sample * own.stride + own.own.begin, own.own.end - own.own.begin,
                      other.h.data() + sample * own.stride + own.own.begin);
        }
      }
    }
  }
  // Sums each node's own columns of dh over all nodes.
  void scatter(std::size_t layer) {
    std::vector<float> sum;
    for (auto& from : nodes_) {
      const auto dh = from->learner.state().layers[layer].dh.span();
      sum.resize(dh.size());
      for (std::size_t i = 0; i < dh.size(); ++i) sum[i] += dh[i];
    }
    for (auto& to : nodes_) {
      LayerState& state = to->learner.state().layers[layer];
      for (std::size_t sample = 0; sample < kSamples; ++sample) {
        const std::size_t at = sample * state.stride;
        for (std::size_t i = state.own.begin; i < state.own.end; ++i) state.dh[at + i] = sum[at + i];
      }
    }
  }

  std::vector<std::unique_ptr<Node>> nodes_;
  std::optional<OwnedBatch> unfinished_;  // a step with rows that are not finished
};

// The length of the difference of all parameters over their length.
double relative_distance(Parameters got, Parameters want) {
  double difference = 0;
  double length = 0;
  const auto x = got.all();
  const auto y = want.all();
  for (std::size_t tensor = 0; tensor < x.size(); ++tensor) {
    for (std::size_t i = 0; i < x[tensor]->size(); ++i) {
      const double d = (*x[tensor])[i] - (*y[tensor])[i];
      difference += d * d;
      length += (*y[tensor])[i] * (*y[tensor])[i];
    }
  }
  return std::sqrt(difference / length);
}

class LearnerParts : public testing::TestWithParam<TableMoments> {};

// 200 steps on 1, 2, 3, 4, 8 nodes; with 8 some hold no unit of the dense layers.
TEST_P(LearnerParts, TrainLikeTheWhole) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 48}}) {
    const ProblemShape shape = shape_of(dense);
    const LabelCounts counts = random_counts(shape.network.labels, 5);
    Node alone(shape.network, whole(shape.network), GetParam(), counts, 2);
    std::vector<std::unique_ptr<Fleet>> fleets;
    for (const std::size_t nodes : {1U, 2U, 3U, 4U, 8U}) {
      fleets.push_back(std::make_unique<Fleet>(shape.network, nodes, GetParam(), counts));
    }
    for (std::uint64_t t = 0; t < 200; ++t) {
      const OwnedBatch batch = random_batch(shape, 100 + t);
      const double loss = alone.learner.step(batch.view(), StepNumber{t}, {.learning_rate = 0.01F}).loss;
      for (auto& fleet : fleets) {
        ASSERT_NEAR(fleet->step(batch, StepNumber{t}), loss, 1e-3 * loss) << t;
      }
    }
    for (auto& fleet : fleets) {
      Network together(shape.network, Moments::kNone);
      fleet->collect(together);
      EXPECT_LT(relative_distance(parameters_of(together), parameters_of(alone.network)), 1e-4)
          << fleet->nodes().size() << " nodes, " << dense.size() << " dense layers";
    }
  }
}

// All that a part holds.
std::vector<NetworkPiece> pieces_of(const NetworkPart& part) {
  std::vector<NetworkPiece> pieces = {{.layer = 0, .range = part.columns}};
  for (const host::Range& units : part.units) pieces.push_back({.layer = pieces.size(), .range = units});
  const std::size_t output = pieces.size();
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (part.rows.holds(shard)) pieces.push_back({.layer = output, .range = part.rows.rows_of(shard)});
  }
  return pieces;
}

// Pieces carry all that training needs: nodes that get those of a network in training go on like it. There
// are no dense layers here: a learner has a copy of their weights from the start.
TEST_P(LearnerParts, GoOnFromPieces) {
  const ProblemShape shape = shape_of({});
  const LabelCounts counts = random_counts(shape.network.labels, 5);
  Fleet alone(shape.network, 1, GetParam(), counts);
  Fleet fleet(shape.network, 3, GetParam(), counts);
  constexpr std::uint64_t kHandedOver = 30;
  for (std::uint64_t t = 0; t < kHandedOver; ++t) alone.step(random_batch(shape, t), StepNumber{t});
  Network& from = alone.nodes().front()->network;
  for (const auto& node : fleet.nodes()) {
    for (const NetworkPiece& piece : pieces_of(node->network.part)) {
      if (node == fleet.nodes().front()) {
        copy_piece(node->network, from, piece);
        continue;
      }
      std::vector<std::byte> bytes(piece_bytes(shape.network, GetParam(), piece));
      save_piece(from, piece, bytes);
      load_piece(node->network, piece, bytes);
    }
  }
  for (std::uint64_t t = kHandedOver; t < 2 * kHandedOver; ++t) {
    alone.step(random_batch(shape, t), StepNumber{t});
    fleet.step(random_batch(shape, t), StepNumber{t});
  }
  Network together(shape.network, Moments::kNone);
  Network want(shape.network, Moments::kNone);
  fleet.collect(together);
  alone.collect(want);
  EXPECT_LT(relative_distance(parameters_of(together), parameters_of(want)), 1e-4);
}

// A node touches nothing of what others hold.
TEST_P(LearnerParts, LeaveOthersRowsAlone) {
  const ProblemShape shape = shape_of({});
  const LabelCounts counts = random_counts(shape.network.labels, 5);
  Fleet fleet(shape.network, 4, GetParam(), counts);
  for (std::uint64_t t = 0; t < 5; ++t) fleet.step(random_batch(shape, t), StepNumber{t});
  for (const auto& node : fleet.nodes()) {
    Network& network = node->network;
    EXPECT_EQ(network.embedding.width(),
              std::min<std::size_t>(network.part.columns.end, 116) - network.part.columns.begin);
    for (std::uint32_t row = 0; row < network.output.rows(); ++row) {
      if (network.part.rows.contains(row)) continue;
      EXPECT_EQ(network.output.last_step(row), 0U) << row;
      EXPECT_EQ(network.bias[row], 0) << row;
      for (std::size_t i = 0; i < network.output.stride(); ++i) EXPECT_EQ(network.output.weights(row)[i], 0);
    }
  }
}

// Claim: the first share is the sum, however far its shift is from 0. Below -88 the exponential of the
// distance is infinite in f32.
TEST(PartitionShares, BeginAnywhere) {
  for (const float shift : {-1000.0F, -89.0F, 0.0F, 89.0F, 1000.0F, -0x1p61F, 0x1p61F}) {
    PartitionShare sum;
    add_share(sum, {.shift = shift, .sum = 3});
    EXPECT_EQ(sum.shift, shift);
    EXPECT_EQ(sum.sum, 3) << shift;
    add_share(sum, {.shift = shift, .sum = 2});
    EXPECT_EQ(sum.sum, 5) << shift;
  }
}

// Claim: whatever others say of their rows, a node computes finite numbers from the sums.
TEST(PartitionShares, OfOthersMakeNoInfinities) {
  const ProblemShape shape = shape_of({});
  const LabelCounts counts = random_counts(shape.network.labels, 5);
  const OwnedBatch batch = random_batch(shape, 100);
  const TableMoments moments{.embedding = Moments::kBlock, .output = Moments::kElement};
  const float most = std::numeric_limits<float>::max() / 2;
  for (const PartitionShare& lie : std::vector<PartitionShare>{
           {-1000, 1}, {-0x1p61F, 1}, {0x1p61F, 1}, {0, 1e-45F}, {0x1p61F, 1e-45F}, {0, most}}) {
    for (const std::size_t nodes : {1U, 2U}) {
      Node node(shape.network, part_of(shape.network, 0, nodes), moments, counts, 2);
      node.learner.begin(batch.view(), StepNumber{0}, {.learning_rate = 0.01F}, Company::kOthers);
      node.learner.embed();
      node.learner.score();
      node.learner.normalise(std::vector<PartitionShare>(kSamples, lie));
      const auto finite = [](float value) { return std::isfinite(value); };
      EXPECT_TRUE(std::ranges::all_of(node.learner.state().last().dh.span(), finite))
          << lie.shift << " " << lie.sum;
      (void)node.learner.finish();
      EXPECT_TRUE(std::ranges::all_of(node.network.output.all_weights(), finite))
          << lie.shift << " " << lie.sum;
      EXPECT_TRUE(std::isfinite(node.learner.loss())) << lie.shift << " " << lie.sum;
    }
  }
}

// Claim: a node without rows of its own adds nothing, whatever the sums of others are.
TEST(PartitionShares, CountNothingWithoutRows) {
  const ProblemShape shape = shape_of({});
  const LabelCounts counts = random_counts(shape.network.labels, 5);
  const OwnedBatch batch = random_batch(shape, 100);
  NetworkPart part = part_of(shape.network, 0, 2);
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) part.rows.drop(shard);
  Node node(shape.network, std::move(part), {.embedding = Moments::kBlock, .output = Moments::kElement},
            counts, 2);
  node.learner.begin(batch.view(), StepNumber{0}, {.learning_rate = 0.01F}, Company::kOthers);
  node.learner.embed();
  node.learner.score();
  node.learner.normalise(std::vector<PartitionShare>(kSamples, {.shift = -1000, .sum = 1}));
  for (const float dh : node.learner.state().last().dh.span()) ASSERT_EQ(dh, 0);
  EXPECT_EQ(node.learner.loss(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    , LearnerParts,
    testing::Values(TableMoments{.embedding = Moments::kBlock, .output = Moments::kElement},
                    TableMoments{.embedding = Moments::kElement, .output = Moments::kBlock}),
    [](const auto& test) {
      return test.param.embedding == Moments::kBlock ? "BlocksInEmbedding" : "BlocksInOutput";
    });

}  // namespace
}  // namespace gossamer::sparse
