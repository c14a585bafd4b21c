// SPDX-License-Identifier: Apache-2.0
//
// Members that hold parts of a network evaluate the same records as one process that holds it whole.
#include "engines/sparse/fleet/fleet_evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/fleet/step/label_lists.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/train/batch_reader.h"
#include "host/sim/compute.h"
#include "kernels/kernels.h"
#include "learn/data/in_memory_dataset.h"
#include "learn/sparse/network/network_pieces.h"
#include "learn/sparse/test_random_problem.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::uint32_t kFeatures = 40;

class NoSteps final : public StepSource {
 public:
  [[nodiscard]] data::Batch read(StepNumber) override { return {}; }
};

// Features and labels of some records. The last label is not one of the network's.
data::InMemoryDataset random_records(std::size_t records, std::uint32_t labels, Rng& rng) {
  data::InMemoryDataset set({.features = kFeatures, .labels = labels + 1});
  for (std::size_t i = 0; i < records; ++i) {
    sparse::OwnedBatch one;
    auto truth = sparse::random_set(3, labels + 1, rng);
    if (i % 7 == 3) truth.clear();
    one.add(i % 11 == 5 ? std::set<std::uint32_t>() : sparse::random_set(5, kFeatures, rng), truth, rng);
    set.add({{one.feature, one.value}, one.label});
  }
  return set;
}

// A network in which many rows score alike, and its parts.
class Divided {
 public:
  struct Options {
    std::vector<std::size_t> dense = {};
    std::uint32_t labels = 300;
    std::size_t hidden = 48;
    std::size_t members = 4;
    std::size_t records = 600;
    kernels::Activation activation = kernels::Activation::kRelu;
    std::uint32_t candidates = 100;
    std::uint64_t seed = 1;
  };
  explicit Divided(const Options& options)
      : rng_(options.seed, Purpose::kTest),
        shape_{.network = {.features = kFeatures,
                           .labels = options.labels,
                           .hidden = options.hidden,
                           .dense = options.dense},
               .shard_shift = 3},
        counts_(sparse::random_counts(options.labels, options.seed)),
        order_(counts_.count, shape_.shard_shift),
        by_row_(sparse::by_row(counts_, order_)),
        records_(random_records(options.records, options.labels, rng_)),
        activation_(options.activation),
        candidates_(options.candidates) {
    sparse::Network whole = sparse::random_network(shape_.network, by_row_, options.seed);
    for (std::size_t row = 5; row < options.labels; row += 1 + row % 4) {
      std::memcpy(whole.output.weights(row), whole.output.weights(3), whole.output.stride() * sizeof(float));
      whole.bias[row] = whole.bias[3];
    }
    cut(whole, options.members);
    whole.drop_moments();
    whole.order = order_;
    sparse::order_by_label(whole);
    model_.network = std::move(whole);
    model_.activation = options.activation;
    model_.weighting = weighting_;
    model_.fusion.candidates = options.candidates;
  }

  std::vector<std::unique_ptr<FleetEvaluation>> begin() {
    std::vector<std::unique_ptr<FleetEvaluation>> members;
    for (std::size_t rank = 0; rank < parts_.size(); ++rank)
      members.push_back(std::make_unique<FleetEvaluation>(*jobs_[rank], *networks_[rank], parts_, rank));
    return members;
  }

  // The answers of the whole network to a range of records.
  PredictionBlock predict(host::Range records) {
    auto predictor =
        Predictor::create(model_, kernels_, compute_, {.fusion = model_.fusion, .parts = kNetAlone});
    EXPECT_TRUE(predictor.ok());
    std::vector<std::uint32_t> begin = {0};
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    for (std::size_t i = records.begin; i < records.end; ++i) {
      const data::SparseRow row = records_.record(RecordIndex{i}).features;
      index.insert(index.end(), row.index.begin(), row.index.end());
      value.insert(value.end(), row.value.begin(), row.value.end());
      begin.push_back(static_cast<std::uint32_t>(index.size()));
    }
    PredictionBlock out;
    EXPECT_TRUE((*predictor)->predict({begin, index, value}, kEvaluationDepth, out).ok());
    return out;
  }
  [[nodiscard]] const data::InMemoryDataset& records() const { return records_; }
  [[nodiscard]] const sparse::RowOrder& order() const { return order_; }
  [[nodiscard]] const sparse::NetworkPart& part(std::size_t rank) const { return parts_[rank]; }

 private:
  static constexpr sparse::TableMoments kMoments{.embedding = sparse::Moments::kElement,
                                                 .output = sparse::Moments::kElement};

  // The job as another machine would make it.
  void add_job() {
    readers_.push_back(std::make_unique<BatchReader>(records_, weighting_, compute_));
    jobs_.push_back(std::make_unique<const FleetJob>(FleetJob{
        .shape = shape_,
        .order = order_,
        .moments = kMoments,
        .init = {},
        .learner = {.activation = activation_},
        .schedule = {},
        .labels = by_row_,
        .steps = steps_,
        .kernels = kernels_,
        .compute = compute_,
        .test = FleetTest{
            .reader = *readers_.back(), .records = records_.size(), .fusion = {.candidates = candidates_}}}));
  }

  // Cuts the network: blocks one after the other, shards as they come. If there are several members, the
  // second one has no rows and the last one no columns.
  void cut(sparse::Network& whole, std::size_t members) {
    for (std::size_t rank = 0; rank < members; ++rank) {
      sparse::NetworkPart part = no_part(shape_);
      const std::size_t holders = members > 1 ? members - 1 : 1;
      for (std::size_t layer = 0; layer < shape_.layers() && rank < holders; ++layer) {
        const std::size_t blocks = shape_.width(layer) / shape_.block(layer);
        const host::Range mine =
            host::worker_range(blocks, static_cast<int>(rank), static_cast<int>(holders));
        columns_of(part, layer) = {mine.begin * shape_.block(layer), mine.end * shape_.block(layer)};
      }
      for (std::size_t shard = 0; shard < shape_.shards(); ++shard) {
        std::size_t holder = (shard * 7) % members;
        if (holder == 1) holder = 0;
        if (holder == rank) part.rows.add(shard);
      }
      networks_.push_back(std::make_unique<sparse::Network>(shape_.network, part, kMoments));
      networks_.back()->order = order_;
      for (const PieceId& id : pieces_of(shape_, part)) {
        const sparse::NetworkPiece piece = piece_of(shape_, id);
        std::vector<std::byte> bytes(sparse::piece_bytes(shape_.network, kMoments, piece));
        sparse::save_piece(whole, piece, bytes);
        sparse::load_piece(*networks_.back(), piece, bytes);
      }
      parts_.push_back(std::move(part));
      add_job();
    }
  }

  Rng rng_;
  const FleetShape shape_;
  const sparse::LabelCounts counts_;
  const sparse::RowOrder order_;
  const sparse::LabelCounts by_row_;
  const kernels::Kernels& kernels_ = kernels::kernels_for(kernels::best_isa());
  host::SimCompute compute_{{.workers = 2, .seed = 3}};
  const text::FeatureWeighting weighting_ = {.counts = text::CountScale::kLog};
  NoSteps steps_;
  const data::InMemoryDataset records_;
  const kernels::Activation activation_;
  const std::uint32_t candidates_;
  std::vector<std::unique_ptr<BatchReader>> readers_;
  std::vector<std::unique_ptr<const FleetJob>> jobs_;
  std::vector<sparse::NetworkPart> parts_;
  std::vector<std::unique_ptr<sparse::Network>> networks_;
  Model model_;
};

// What rank `to` gets in an exchange, by rank.
std::vector<Slices> handed_over(const cluster::Operation& of_receiver, const std::vector<Slices>& given,
                                const std::vector<cluster::Operation>& operations, std::size_t to) {
  std::vector<Slices> got;
  for (std::size_t from = 0; from < given.size(); ++from) {
    SliceReader reader(given[from]);
    if (of_receiver.kind == cluster::OperationKind::kAllToAll) {
      for (std::size_t rank = 0; rank < to; ++rank) (void)reader.take(operations[from].parts[rank]);
      EXPECT_EQ(operations[from].parts[to], of_receiver.from[from]);
      got.push_back(reader.take(operations[from].parts[to]));
    } else {
      EXPECT_EQ(reader.left(), of_receiver.parts[from]);
      got.push_back(reader.take(reader.left()));
    }
  }
  return got;
}

using Look = std::function<void(FleetEvaluation&)>;

// Runs all exchanges of an evaluation, and calls `look` for each member in each of them.
void evaluate(std::vector<std::unique_ptr<FleetEvaluation>>& members, const Look& look) {
  std::vector<std::vector<Slices>> got(members.size());
  for (std::uint64_t exchange = 0; exchange <= members.front()->exchanges(); ++exchange) {
    std::vector<Slices> given;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      auto done = members[rank]->round(exchange, got[rank]);
      ASSERT_TRUE(done.ok()) << done.error().message();
      given.push_back(*std::move(done));
      look(*members[rank]);
    }
    if (exchange == members.front()->exchanges()) return;
    std::vector<cluster::Operation> operations;
    for (const auto& member : members) operations.push_back(member->operation(exchange));
    for (std::size_t rank = 0; rank < members.size(); ++rank)
      got[rank] = handed_over(operations[rank], given, operations, rank);
  }
}

// Claim: the merged lists of parts are the lists of the whole network to the bit, with ties and scores. The
// number of members and layers does not matter, nor that some hold no rows or no columns. Every record is
// answered once.
TEST(FleetEvaluation, AnswersLikeOneProcess) {
  std::uint64_t seed = 0;
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    for (const std::size_t members : {1, 2, 3, 4, 7}) {
      for (const std::uint32_t labels : {300, 60}) {
        ++seed;
        SCOPED_TRACE(::testing::Message() << members << " members, " << labels << " labels, " << dense.size()
                                          << " dense layers, seed " << seed);
        const auto activation = static_cast<kernels::Activation>(seed % 3);
        Divided divided({.dense = dense,
                         .labels = labels,
                         .members = members,
                         .activation = activation,
                         .candidates = seed % 2 == 0 ? 150U : 10U,
                         .seed = seed});
        const PredictionBlock want = divided.predict({0, divided.records().size()});
        auto fleet = divided.begin();
        std::vector<int> answered(want.queries());
        std::vector<host::Range> seen(members);
        std::size_t at = 0;
        evaluate(fleet, [&](FleetEvaluation& one) {
          const host::Range range = one.answered();
          host::Range& before = seen[at++ % members];
          if (range.end == before.end) return;
          before = range;
          ASSERT_EQ(one.answers().queries(), range.end - range.begin);
          for (std::size_t i = range.begin; i < range.end; ++i) {
            ++answered[i];
            const auto got = one.answers().row(i - range.begin);
            const auto row = want.row(i);
            ASSERT_EQ(std::vector<Scored>(got.begin(), got.end()),
                      std::vector<Scored>(row.begin(), row.end()))
                << "record " << i;
          }
        });
        EXPECT_EQ(answered, std::vector<int>(want.queries(), 1));
      }
    }
  }
}

// Claim: all members have the same ranks, and the ranks give the metrics of one process, to the bit.
TEST(FleetEvaluation, RanksGiveTheSameMetrics) {
  for (const std::size_t members : {1, 4}) {
    for (const std::size_t records : {0, 1, 256, 257, 600}) {
      Divided divided({.members = members, .records = records, .seed = 9 + members});
      const PredictionBlock lists = divided.predict({0, records});
      auto fleet = divided.begin();
      evaluate(fleet, [](FleetEvaluation&) {});
      const std::vector<std::uint32_t> counts(300, 4);
      Evaluator want(counts, 1000);
      Evaluator got(counts, 1000);
      std::size_t at = 0;
      for (std::size_t i = 0; i < records; ++i) {
        const auto truth = divided.records().record(RecordIndex{i}).labels;
        want.add(lists.row(i), truth);
        got.add_ranks(fleet.front()->ranks().subspan(at, truth.size()), truth);
        at += truth.size();
      }
      EXPECT_EQ(at, fleet.front()->ranks().size());
      EXPECT_EQ(want.metrics().named(), got.metrics().named()) << records << " records";
      if (records > 200) {
        EXPECT_GT(got.metrics().recall[1], 0);
      }
      for (const auto& one : fleet) EXPECT_TRUE(std::ranges::equal(one->ranks(), fleet.front()->ranks()));
    }
  }
}

// Claim: lists or ranks that no member can have given are an error, and no crash.
TEST(FleetEvaluation, RefusesWhatNobodyCanHave) {
  Divided divided({.members = 2, .records = 10, .seed = 4});
  const auto run = [&](std::uint64_t spoilt, std::uint32_t word, std::uint32_t value) {
    auto fleet = divided.begin();
    std::vector<std::vector<Slices>> got(2);
    for (std::uint64_t exchange = 0; exchange <= fleet.front()->exchanges(); ++exchange) {
      std::vector<Slices> given;
      for (std::size_t rank = 0; rank < 2; ++rank) {
        auto done = fleet[rank]->round(exchange, got[rank]);
        if (!done.ok()) return done.error().got;
        given.push_back(*std::move(done));
      }
      if (exchange == fleet.front()->exchanges()) break;
      const std::vector operations{fleet[0]->operation(exchange), fleet[1]->operation(exchange)};
      for (std::size_t rank = 0; rank < 2; ++rank)
        got[rank] = handed_over(operations[rank], given, operations, rank);
      if (exchange != spoilt) continue;
      // Spoils the bytes that the first member gives the second.
      std::string bytes = joined(got[1][0]);
      std::memcpy(bytes.data() + word * sizeof(value), &value, sizeof(value));
      got[1][0] = {Slice::of(std::move(bytes))};
    }
    return std::string("nothing");
  };
  const auto bits = [](float number) { return std::bit_cast<std::uint32_t>(number); };
  EXPECT_EQ(run(9, 0, 0), "nothing");
  EXPECT_EQ(run(1, 0, 300), "label 300 of 300");
  EXPECT_EQ(run(1, 1, bits(std::numeric_limits<float>::quiet_NaN())), "a score of nan");
  EXPECT_EQ(run(1, 1, bits(std::numeric_limits<float>::infinity())), "a score of inf");
  EXPECT_EQ(run(2, 0, 101), "101");
  // The second member has no rows at all.
  std::vector<std::vector<Scored>> lists(1);
  std::vector<std::byte> bytes;
  append_list(std::vector<Scored>{{7, 1.0F}}, 1, bytes);
  const auto added =
      add_lists({Slice::of(bytes)}, 1, divided.part(1).rows, divided.order(), std::span(lists));
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().got, "label 7 of another");
}

}  // namespace
}  // namespace gossamer::sparse_engine
