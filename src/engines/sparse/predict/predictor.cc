// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/predictor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/aligned_array.h"
#include "base/check.h"
#include "engines/sparse/model/instance_index.h"
#include "engines/sparse/predict/hashed_search.h"
#include "engines/sparse/predict/neighbours.h"
#include "learn/sparse/hidden_layer.h"

namespace gossamer::sparse_engine {
namespace {

// Counts how many of the best `depth` labels another search found.
struct Overlap {
  std::size_t depth;
  std::uint64_t found = 0;
  std::uint64_t of = 0;

  void add(std::span<const Scored> exact, std::span<const Scored> other) {
    const auto best = exact.first(std::min(depth, exact.size()));
    of += best.size();
    for (const Scored& label : best) found += std::ranges::count(other, label.id, &Scored::id) > 0 ? 1 : 0;
  }
  [[nodiscard]] double percent() const {
    return of == 0 ? 0 : 100 * static_cast<double>(found) / static_cast<double>(of);
  }
};

class FusedPredictor final : public Predictor {
 public:
  FusedPredictor(const Model& model, const kernels::Kernels& kernels, host::Compute& compute,
                 const PredictOptions& options);

  Result<void> predict(const data::SparseRows& queries, std::size_t top_k, PredictionBlock& out) override;
  // Sets a search that takes the place of the exact search, or runs beside it.
  void retrieve_by(std::unique_ptr<HashedSearch> hashed) { hashed_ = std::move(hashed); }
  [[nodiscard]] std::optional<RetrievalRecall> recall() const override;

 private:
  struct Worker {
    Fusion fusion;
    InstanceIndex::Scratch scratch;
    AlignedArray<float> cosines;         // [kIndexQueries][padded rows of the index]
    std::vector<float> weighted;         // one query, weighted as for the net
    std::vector<float> values;           // of the queries, weighted for comparison
    std::vector<data::SparseRow> units;  // those queries
    std::vector<Scored> input;
    std::vector<FoundRow> by_input;  // the rows of `input`, and those by hidden cosine, with both cosines
    std::vector<FoundRow> by_hidden;
    std::vector<Scored> mixed;
  };
  // The queries [first, first + count) of `rows`.
  struct Block {
    const data::SparseRows& rows;
    std::size_t first;
    std::size_t count;
  };

  void compute_hidden(const Block& block);
  void search_labels(const Block& block, std::size_t candidates);
  [[nodiscard]] std::span<const Scored> net_labels(std::size_t q) const;
  void compute_cosines(const Block& block, host::Range queries, Worker& worker) const;
  void rank_all(const Block& block, host::Range queries, Worker& worker, PredictionBlock& out);
  void rank(const Block& block, std::size_t q, std::span<const float> cosines, Worker& worker,
            PredictionBlock& out);
  void mix(std::size_t q, std::span<const float> cosines, Worker& worker) const;

  const Model& model_;
  const kernels::Kernels& kernels_;
  host::Compute& compute_;
  PredictOptions options_;
  sparse::HiddenLayer hidden_layer_;
  text::FeatureWeighting comparison_;
  std::optional<InstanceIndex> index_;
  std::optional<RowSearch> label_search_;
  std::unique_ptr<HashedSearch> hashed_;
  Overlap at10_{.depth = 10};
  Overlap at100_{.depth = 100};
  std::optional<RowSearch> instance_search_;
  AlignedArray<float> hidden_;       // [kQueryBlock][stride]; rows past the block's are not looked at
  AlignedArray<float> unit_hidden_;  // the same, of length 1
  std::vector<Worker> workers_;
};

FusedPredictor::FusedPredictor(const Model& model, const kernels::Kernels& kernels, host::Compute& compute,
                               const PredictOptions& options)
    : model_(model),
      kernels_(kernels),
      compute_(compute),
      options_(options),
      hidden_layer_(model.network, model.activation, kernels),
      comparison_(text::comparison_weighting(model.weighting, model.neighbours)) {
  const sparse::NetworkShape& shape = model.network.shape;
  const std::size_t stride = hidden_layer_.stride();
  if (options.parts.input_neighbours || options.parts.centroids) {
    index_.emplace(*model.instances, IndexShape{.features = shape.features, .labels = shape.labels}, kernels,
                   compute);
  }
  if (options.parts.net && options.retrieval != Retrieval::kHashed) {
    label_search_.emplace(RowMatrix{.rows = shape.labels,
                                    .width = shape.last_hidden(),
                                    .weights = model.network.output.all_weights().data(),
                                    .stride = stride,
                                    .bias = model.network.bias.data()},
                          kernels, compute);
  }
  if (options.parts.hidden_neighbours) {
    instance_search_.emplace(RowMatrix{.rows = model.instances->rows(),
                                       .width = shape.last_hidden(),
                                       .compact = model.instances->hidden.data()},
                             kernels, compute);
  }
  hidden_ = AlignedArray<float>(kQueryBlock * stride);
  unit_hidden_ = AlignedArray<float>(kQueryBlock * stride);
  for (int w = 0; w < compute.workers(); ++w) {
    workers_.push_back({.fusion = Fusion(options.fusion, options.parts,
                                         {.network = &model.network,
                                          .kernels = &kernels,
                                          .instances = model.instances ? &*model.instances : nullptr,
                                          .index = index_ ? &*index_ : nullptr}),
                        .scratch = {},
                        .cosines = AlignedArray<float>(index_ ? kIndexQueries * index_->padded_rows() : 0),
                        .weighted = {},
                        .values = {},
                        .units = {},
                        .input = {},
                        .by_input = {},
                        .by_hidden = {},
                        .mixed = {}});
  }
}

void FusedPredictor::compute_hidden(const Block& block) {
  const std::size_t stride = hidden_layer_.stride();
  compute_.run([&](int w) {
    const host::Range range = host::worker_range(block.count, w, compute_.workers());
    std::vector<float>& weighted = workers_[static_cast<std::size_t>(w)].weighted;
    for (std::size_t q = range.begin; q < range.end; ++q) {
      const data::SparseRow query = block.rows.row(block.first + q);
      weighted.resize(query.value.size());
      model_.weighting.apply(query, weighted);
      float* const hidden = hidden_.data() + q * stride;
      float* const unit = unit_hidden_.data() + q * stride;
      hidden_layer_.forward({query.index, weighted}, hidden);
      to_unit_length({hidden, stride}, unit);
    }
  });
}

std::span<const Scored> FusedPredictor::net_labels(std::size_t q) const {
  if (hashed_) return hashed_->found(q);
  return label_search_ ? label_search_->found(q) : std::span<const Scored>();
}

void FusedPredictor::search_labels(const Block& block, std::size_t candidates) {
  const QueryMatrix queries{hidden_.data(), hidden_layer_.stride(), block.count};
  if (hashed_) hashed_->search(queries, candidates);
  if (label_search_) label_search_->search(queries, candidates);
  if (!hashed_ || !label_search_) return;
  for (std::size_t q = 0; q < block.count; ++q) {
    for (Overlap* overlap : {&at10_, &at100_}) overlap->add(label_search_->found(q), hashed_->found(q));
  }
}

std::optional<RetrievalRecall> FusedPredictor::recall() const {
  if (!hashed_ || !label_search_) return std::nullopt;
  return RetrievalRecall{.at10 = at10_.percent(), .at100 = at100_.percent()};
}

// Ranks the rows of both neighbour lists by the mean of their two cosines.
void FusedPredictor::mix(std::size_t q, std::span<const float> cosines, Worker& worker) const {
  const std::size_t width = model_.network.shape.last_hidden();
  const float* const query = unit_hidden_.data() + q * hidden_layer_.stride();
  worker.by_input.clear();
  worker.by_hidden.clear();
  for (const Scored& one : worker.input) {
    const kernels::Bf16* const row = model_.instances->hidden.data() + std::size_t{one.id} * width;
    worker.by_input.push_back({one.id, one.score, kernels_.dot_bf16(row, query, width)});
  }
  for (const Scored& one : instance_search_->found(q))
    worker.by_hidden.push_back({one.id, cosines[one.id], one.score});
  mix_neighbours(worker.by_input, worker.by_hidden, options_.fusion.neighbours, worker.mixed);
}

// The input cosines of at most kIndexQueries queries of the block.
void FusedPredictor::compute_cosines(const Block& block, host::Range queries, Worker& worker) const {
  worker.values.clear();
  worker.units.clear();
  for (std::size_t q = queries.begin; q < queries.end; ++q) {
    const data::SparseRow query = block.rows.row(block.first + q);
    const std::size_t at = worker.values.size();
    worker.values.resize(at + query.value.size());
    comparison_.apply(query, std::span(worker.values).subspan(at));
  }
  std::size_t at = 0;
  for (std::size_t q = queries.begin; q < queries.end; ++q) {
    const data::SparseRow query = block.rows.row(block.first + q);
    worker.units.push_back({query.index, std::span(worker.values).subspan(at, query.value.size())});
    at += query.value.size();
  }
  index_->cosines(worker.units, worker.scratch,
                  worker.cosines.span().first(worker.units.size() * index_->padded_rows()));
}

void FusedPredictor::rank(const Block& block, std::size_t q, std::span<const float> cosines, Worker& worker,
                          PredictionBlock& out) {
  worker.input.clear();
  worker.mixed.clear();
  if (options_.parts.input_neighbours) index_->nearest(cosines, options_.fusion.neighbours, worker.input);
  if (mixes(options_.fusion, options_.parts)) mix(q, cosines, worker);
  const QueryViews views{
      .net = net_labels(q),
      .layer = hidden_.data() + q * hidden_layer_.stride(),
      .input = worker.input,
      .hidden = instance_search_ ? instance_search_->found(q) : std::span<const Scored>(),
      .mixed = worker.mixed,
      .cosines = cosines,
  };
  const std::size_t at = block.first + q;
  const auto mine = [&out, at](auto& list) {
    return std::span(list).subspan(std::min(at * out.top_k, list.size()), list.empty() ? 0 : out.top_k);
  };
  out.count[at] =
      static_cast<std::uint32_t>(worker.fusion.rank(views, out.top_k, mine(out.entries), mine(out.terms)));
  out.take_shares(worker.fusion, at);
}

// Ranks some queries of the block, kIndexQueries at a time.
void FusedPredictor::rank_all(const Block& block, host::Range queries, Worker& worker, PredictionBlock& out) {
  for (std::size_t first = queries.begin; first < queries.end; first += kIndexQueries) {
    const std::size_t last = std::min(first + kIndexQueries, queries.end);
    if (index_) compute_cosines(block, {first, last}, worker);
    for (std::size_t q = first; q < last; ++q) {
      const std::size_t rows = index_ ? index_->padded_rows() : 0;
      rank(block, q, std::as_const(worker.cosines).span().subspan((q - first) * rows, rows), worker, out);
    }
  }
}

Result<void> FusedPredictor::predict(const data::SparseRows& queries, std::size_t top_k,
                                     PredictionBlock& out) {
  CHECK(top_k >= 1, top_k);
  out.top_k = top_k;
  out.count.assign(queries.rows(), 0);
  out.entries.assign(queries.rows() * top_k, {});
  out.terms.assign(out.with_terms ? out.entries.size() : 0, {});
  out.share.assign(out.entries.size(), 0);
  out.probability.assign(has_probabilities(options_) ? out.entries.size() : 0, 0);
  // The net alone can name any number of labels. In a fusion it names as many as the options say.
  const bool alone = !options_.parts.need_instances();
  const std::size_t candidates =
      alone ? std::max<std::size_t>(options_.fusion.candidates, top_k) : options_.fusion.candidates;
  for (std::size_t first = 0; first < queries.rows(); first += kQueryBlock) {
    const Block block{
        .rows = queries, .first = first, .count = std::min(kQueryBlock, queries.rows() - first)};
    if (options_.parts.net || instance_search_) compute_hidden(block);
    const std::size_t stride = hidden_layer_.stride();
    if (options_.parts.net) search_labels(block, candidates);
    if (instance_search_) {
      instance_search_->search({unit_hidden_.data(), stride, block.count}, options_.fusion.neighbours);
    }
    compute_.run([&](int w) {
      rank_all(block, host::worker_range(block.count, w, compute_.workers()),
               workers_[static_cast<std::size_t>(w)], out);
    });
  }
  return {};
}

Error cannot_use(std::string what, std::string got, std::string expected, std::string fix) {
  return {.kind = ErrorKind::kUsage,
          .where = "prediction",
          .what = std::move(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = std::move(fix)};
}

}  // namespace

void PredictionBlock::take_shares(const Fusion& fusion, std::size_t q) {
  for (std::size_t i = q * top_k; i < q * top_k + count[q]; ++i) {
    share[i] = fusion.share(entries[i].score);
    if (!probability.empty()) probability[i] = fusion.probability(entries[i].score).value_or(0);
  }
}

PredictOptions default_options(const Model& model) {
  return {.fusion = model.fusion, .parts = model.instances ? PredictParts{} : kNetAlone};
}

Result<std::unique_ptr<Predictor>> Predictor::create(const Model& model, const kernels::Kernels& kernels,
                                                     host::Compute& compute, const PredictOptions& options) {
  const PredictParts& parts = options.parts;
  if (auto valid = validate(options.fusion); !valid.ok()) return valid.error();
  if (parts.need_instances() && !model.instances) {
    return cannot_use("neighbours and centroids need training rows", "a model without training rows",
                      "a model trained with predict.instances=true",
                      "set predict.instances=false, or train again with true");
  }
  if (!parts.net && !parts.input_neighbours && !parts.hidden_neighbours) {
    return cannot_use("no part names candidates", "all of net and neighbours switched off",
                      "at least one of them on", "switch the net or one kind of neighbours on");
  }
  auto predictor = std::make_unique<FusedPredictor>(model, kernels, compute, options);
  if (parts.net && options.retrieval != Retrieval::kExact) {
    auto hashed = HashedSearch::create(model.network, kernels, compute);
    if (!hashed.ok()) return hashed.error();
    predictor->retrieve_by(std::move(*hashed));
  }
  return std::unique_ptr<Predictor>(std::move(predictor));
}

}  // namespace gossamer::sparse_engine
