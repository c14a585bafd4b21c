// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/negatives/hash_negatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "learn/sparse/test_random_problem.h"

namespace gossamer::sparse {
namespace {

constexpr NetworkShape kShape = {.features = 5, .labels = 400, .hidden = 12};
const kernels::Kernels& best() { return kernels::kernels_for(kernels::best_isa()); }

Network make_network(std::uint64_t seed) {
  return random_network(kShape, random_counts(kShape.labels, 5), seed);
}

constexpr unsigned kShift = 4;  // 25 shards

// The same network, with its rows in shards.
Network make_whole(std::uint64_t seed) {
  Network network = make_network(seed);
  network.part = whole(kShape, kShift);
  return network;
}
// What one of two nodes holds of it: every other shard.
Network make_half(std::size_t node, std::uint64_t seed) {
  Network network = make_whole(seed);
  for (std::size_t shard = node; shard < network.part.rows.shards(); shard += 2)
    network.part.rows.drop(shard);
  return network;
}

// A batch with random hidden vectors.
BatchState random_hidden(std::size_t samples, std::uint64_t seed) {
  const std::size_t stride = row_stride(kShape.hidden);
  BatchState state(samples, std::array{LayerColumns{.stride = stride, .own = {0, stride}}});
  Rng rng(seed, Purpose::kTest);
  for (std::size_t s = 0; s < samples; ++s) {
    for (std::size_t i = 0; i < kShape.hidden; ++i) {
      state.last().h[s * state.last().stride + i] = std::max(0.0F, rng.normal());
    }
  }
  return state;
}

std::vector<std::uint32_t> found(HashNegatives& hashed, const BatchState& state, StepNumber step,
                                 std::size_t sample) {
  hashed.find(0, state, step, sample);
  const auto rows = hashed.found().of(sample);
  return {rows.begin(), rows.end()};
}

// The rows by support, counted one by one. Where buckets are capped, only the last rows of each count.
std::vector<std::uint32_t> by_support(const Network& network, const HashNegativeOptions& options,
                                      std::span<const float> h, std::size_t limit) {
  const auto family = make_hash_family(options, kShape.hidden, best().isa);
  lsh::HashWorkspace workspace(family->shape());
  std::vector<std::uint32_t> codes(options.tables);
  std::vector<std::uint32_t> row_codes(options.tables);
  family->hash_dense(h, workspace, codes);
  std::vector<std::pair<int, std::uint32_t>> support;
  std::vector<std::size_t> seen(options.tables);  // rows of each bucket, the last one first
  for (auto row = static_cast<std::uint32_t>(kShape.labels); row-- > 0;) {
    family->hash_dense({network.output.weights(row), kShape.hidden}, workspace, row_codes);
    int tables = 0;
    for (std::size_t t = 0; t < codes.size(); ++t) {
      if (codes[t] != row_codes[t]) continue;
      tables += options.bucket_cap == 0 || seen[t]++ < options.bucket_cap ? 1 : 0;
    }
    if (tables > 0) support.emplace_back(-tables, row);
  }
  std::ranges::sort(support);
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < std::min(limit, support.size()); ++i) rows.push_back(support[i].second);
  return rows;
}

// A sample finds the rows that most tables support, with both families, found / queries of them; the first
// samples ask.
TEST(HashNegatives, FindsTheBestSupported) {
  Network network = make_network(1);
  host::SimCompute compute({.workers = 2});
  const BatchState state = random_hidden(6, 2);
  for (const HashKind kind : {HashKind::kSimHash, HashKind::kWinner}) {
    const HashNegativeOptions options = {
        .kind = kind, .functions = 2, .tables = 9, .queries = 4, .found = 30};
    HashNegatives hashed({network, best(), compute}, options);
    hashed.prepare(StepNumber{0});
    EXPECT_EQ(hashed.found().asking(6), 4U);
    EXPECT_EQ(hashed.found().asking(3), 3U);
    for (std::size_t sample = 0; sample < 4; ++sample) {
      const std::span<const float> h(state.last().h.data() + sample * state.last().stride, kShape.hidden);
      const auto want = by_support(network, options, h, 7);
      EXPECT_EQ(found(hashed, state, StepNumber{0}, sample), want);
      EXPECT_EQ(want.size(), 7U);
    }
  }
}

// Claim: A cap leaves a sample the last rows of each bucket, and no others.
TEST(HashNegatives, CapsBuckets) {
  Network network = make_network(1);
  host::SimCompute compute({.workers = 2});
  const BatchState state = random_hidden(4, 2);
  HashNegativeOptions options = {.functions = 2, .tables = 9, .queries = 4, .found = 80, .bucket_cap = 10};
  HashNegatives hashed({network, best(), compute}, options);
  hashed.prepare(StepNumber{0});
  for (std::size_t sample = 0; sample < 4; ++sample) {
    const std::span<const float> h(state.last().h.data() + sample * state.last().stride, kShape.hidden);
    options.bucket_cap = 10;
    const auto want = by_support(network, options, h, 20);
    EXPECT_EQ(found(hashed, state, StepNumber{0}, sample), want);
    options.bucket_cap = 0;
    EXPECT_NE(by_support(network, options, h, 20), want);
  }
}

// At random a sample finds rows of the buckets, other ones in another step, the same ones in the same step.
TEST(HashNegatives, SamplesBuckets) {
  Network network = make_network(1);
  host::SimCompute compute({.workers = 1});
  const BatchState state = random_hidden(1, 2);
  const HashNegativeOptions options = {
      .functions = 3, .tables = 9, .selection = HashSelection::kRandom, .queries = 1, .found = 40};
  HashNegatives hashed({network, best(), compute}, options);
  hashed.prepare(StepNumber{0});
  const auto all = by_support(network, options, {state.last().h.data(), kShape.hidden}, kShape.labels);
  const auto first = found(hashed, state, StepNumber{0}, 0);
  EXPECT_EQ(first.size(), 40U);
  for (const std::uint32_t row : first) EXPECT_TRUE(std::ranges::find(all, row) != all.end()) << row;
  EXPECT_NE(found(hashed, state, StepNumber{1}, 0), first);
  EXPECT_EQ(found(hashed, state, StepNumber{0}, 0), first);
}

// Turns a row into a sample's own hidden vector, which then is the row that all tables support.
void become(Network& network, HashNegatives& hashed, std::uint32_t row, const BatchState& state) {
  double squares = 0;
  for (std::size_t i = 0; i < kShape.hidden; ++i) {
    float& w = network.output.weights(row)[i];
    squares += std::pow(static_cast<double>(state.last().h[i]) - static_cast<double>(w), 2);
    w = state.last().h[i];
  }
  hashed.note_change(row, static_cast<float>(std::sqrt(squares)) * 1.001F);
}

// Tables begin at the first step and follow changes at the steps of the schedule. That is 3, then gaps of 2
// e^(i/2), so 5 and 8.29 (that is 9).
TEST(HashNegatives, UpdatesBySchedule) {
  Network network = make_network(1);
  host::SimCompute compute({.workers = 2});
  const BatchState state = random_hidden(1, 2);
  HashNegatives hashed({network, best(), compute}, {.functions = 5,
                                                    .tables = 9,
                                                    .queries = 1,
                                                    .found = 1,
                                                    .first_step = 3,
                                                    .update_every = 2,
                                                    .update_growth = 0.5});
  for (std::uint64_t t = 0; t < 12; ++t) {
    hashed.prepare(StepNumber{t});
    EXPECT_EQ(hashed.begun(StepNumber{t}), t >= 3);
    EXPECT_EQ(hashed.follows(), t >= 3);
    EXPECT_EQ(hashed.bytes() > 0, t >= 3);
    if (t == 3 || t == 5) become(network, hashed, t == 3 ? 20 : 10, state);
    if (t < 3) continue;
    const auto best = found(hashed, state, StepNumber{t}, 0).front();
    // Equal support is ordered by row.
    EXPECT_EQ(best == 20, t >= 5 && t < 9) << t;
    EXPECT_EQ(best == 10, t >= 9) << t;
  }
}

// Moves every row by this share of its length, and notes it.
void move_all(Network& network, HashNegatives& hashed, float share) {
  Rng rng(8, Purpose::kTest);
  for (std::uint32_t row = 0; row < kShape.labels; ++row) {
    const std::span<float> w(network.output.weights(row), kShape.hidden);
    std::array<float, kShape.hidden> move{};
    double moved = 0;
    double length = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      move[i] = rng.normal();
      moved += std::pow(static_cast<double>(move[i]), 2);
      length += std::pow(static_cast<double>(w[i]), 2);
    }
    const double by = static_cast<double>(share) * std::sqrt(length);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] += move[i] * static_cast<float>(by / std::sqrt(moved));
    hashed.note_change(row, static_cast<float>(by) * 1.001F);
  }
}

// Claim: An update hashes rows again that moved by more than the tolerance, and leaves the others alone. With
// tolerance 0 it leaves the keys of tables that are built anew.
TEST(HashNegatives, UpdatesBeyondTheTolerance) {
  struct Move {
    double tolerance;
    float share;
    bool hashed;
  };
  for (const Move& move : {Move{0, 0.05F, true}, Move{0.1, 0.2F, true}, Move{0.3, 0.2F, false}}) {
    SCOPED_TRACE(move.tolerance);
    Network network = make_network(1);
    host::SimCompute compute({.workers = 2});
    const HashNegativeOptions options = {
        .functions = 8, .tables = 9, .tolerance = move.tolerance, .update_every = 1};
    HashNegatives hashed({network, best(), compute}, options);
    hashed.prepare(StepNumber{0});
    const auto before = hashed.state().keys;
    move_all(network, hashed, move.share);
    hashed.prepare(StepNumber{1});
    HashNegatives fresh({network, best(), compute}, options);
    fresh.prepare(StepNumber{0});
    ASSERT_NE(fresh.state().keys, before);
    EXPECT_EQ(hashed.state().keys, move.hashed ? fresh.state().keys : before);
  }
}

// A part finds what it holds. For the same vectors, two parts that hold everything between them find all that
// the whole finds. Where no answer is cut short they find exactly that. The whole finds the same in shards or
// not.
TEST(HashNegatives, PartsFindWhatTheyHold) {
  Network all = make_whole(1);
  Network plain = make_network(1);
  Network half[] = {make_half(0, 1), make_half(1, 1)};
  host::SimCompute compute({.workers = 2});
  const BatchState state = random_hidden(8, 2);
  for (const HashSelection selection : {HashSelection::kBest, HashSelection::kRandom}) {
    for (const std::size_t each : {std::size_t{12}, kShape.labels}) {
      const HashNegativeOptions options = {
          .functions = 5, .tables = 9, .selection = selection, .queries = 8, .found = 8 * each};
      HashNegatives whole({all, best(), compute}, options);
      HashNegatives unsharded({plain, best(), compute}, options);
      HashNegatives first({half[0], best(), compute}, options);
      HashNegatives second({half[1], best(), compute}, options);
      for (HashNegatives* hashed : {&whole, &unsharded, &first, &second}) hashed->prepare(StepNumber{0});
      EXPECT_LT(first.bytes(), 0.6 * static_cast<double>(whole.bytes()));
      for (std::size_t sample = 0; sample < 8; ++sample) {
        auto want = found(whole, state, StepNumber{0}, sample);
        EXPECT_EQ(found(unsharded, state, StepNumber{0}, sample), want);
        auto got = found(first, state, StepNumber{0}, sample);
        for (const std::uint32_t row : got) EXPECT_TRUE(half[0].part.rows.contains(row)) << row;
        for (const std::uint32_t row : found(second, state, StepNumber{0}, sample)) {
          EXPECT_TRUE(half[1].part.rows.contains(row)) << row;
          got.push_back(row);
        }
        std::ranges::sort(want);
        std::ranges::sort(got);
        EXPECT_TRUE(std::ranges::includes(got, want));
        const bool cut = want.size() == each;
        EXPECT_EQ(cut, each == 12);
        EXPECT_EQ(got.size() > want.size(), cut);
      }
    }
  }
}

// A node without rows finds none.
TEST(HashNegatives, NoRowsFindNothing) {
  Network network = make_half(0, 1);
  for (std::size_t shard = 0; shard < network.part.rows.shards(); ++shard) network.part.rows.drop(shard);
  host::SimCompute compute({.workers = 1});
  const BatchState state = random_hidden(1, 2);
  HashNegatives hashed({network, best(), compute}, {.queries = 1, .update_every = 1});
  hashed.restore(hashed.state(), StepNumber{1});
  for (std::uint64_t t = 1; t < 4; ++t) {
    hashed.prepare(StepNumber{t});
    EXPECT_TRUE(found(hashed, state, StepNumber{t}, 0).empty());
  }
  EXPECT_FALSE(hashed.follows());
}

// Expects that restored states of the network that `make` makes go on alike.
void expect_restored_states_go_on(FunctionRef<Network()> make) {
  host::SimCompute compute({.workers = 2});
  const HashNegativeOptions options = {.functions = 4,
                                       .tables = 5,
                                       .queries = 2,
                                       .found = 20,
                                       .tolerance = 0.05,
                                       .first_step = 2,
                                       .update_every = 3,
                                       .update_growth = 0.1};
  const auto step = [](HashNegatives& hashed, Network& network, std::uint64_t t) {
    const BatchState state = random_hidden(2, 100 + t);
    hashed.prepare(StepNumber{t});
    std::vector<std::uint32_t> rows;
    for (std::size_t s = 0; s < 2 && hashed.begun(StepNumber{t}); ++s) {
      const auto some = found(hashed, state, StepNumber{t}, s);
      rows.insert(rows.end(), some.begin(), some.end());
    }
    Rng rng(3, Purpose::kTest, t);
    for (int i = 0; i < 50; ++i) {
      const auto row = static_cast<std::uint32_t>(rng.below(kShape.labels));
      if (!network.part.rows.contains(row)) continue;
      network.output.weights(row)[0] += 0.125F;
      hashed.note_change(row, 0.1251F);
    }
    return rows;
  };
  std::vector<std::vector<std::uint32_t>> want;
  Network whole = make();
  HashNegatives hashed({whole, best(), compute}, options);
  for (std::uint64_t t = 0; t < 12; ++t) want.push_back(step(hashed, whole, t));
  for (std::uint64_t stop = 0; stop < 12; ++stop) {
    Network network = make();
    HashNegatives before({network, best(), compute}, options);
    for (std::uint64_t t = 0; t < stop; ++t) step(before, network, t);
    HashNegatives after({network, best(), compute}, options);
    after.restore(before.state(), StepNumber{stop});
    for (std::uint64_t t = stop; t < 12; ++t) EXPECT_EQ(step(after, network, t), want[t]) << stop << " " << t;
  }
}

// A state that is saved at any step and restored elsewhere goes on alike. So does one from before the tables
// begin, and the state of a part.
TEST(HashNegatives, RestoredStatesGoOn) {
  expect_restored_states_go_on([] { return make_network(1); });
  expect_restored_states_go_on([] { return make_half(1, 1); });
}

}  // namespace
}  // namespace gossamer::sparse
