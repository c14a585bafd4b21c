// SPDX-License-Identifier: Apache-2.0
#include "commands/train/evaluation_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "commands/predict/block_evaluation.h"
#include "learn/data/cache_writer.h"
#include "learn/data/cached_dataset.h"

namespace gossamer::commands {
namespace {

class CacheBlocks final : public TestBlocks {
 public:
  CacheBlocks(const sparse_engine::Model& model, data::CacheWriter& writer)
      : TestBlocks(model, kPredictBlock), writer_(writer) {}
  [[nodiscard]] std::uint32_t labels() const { return labels_; }

 private:
  [[nodiscard]] Result<void> take(const data::SparseRows& queries, const data::LabelSets& truth) override {
    for (std::size_t i = 0; i < queries.rows(); ++i) {
      const data::Record record{.features = queries.row(i), .labels = truth.row(i)};
      if (!record.labels.empty()) labels_ = std::max(labels_, record.labels.back() + 1);
      if (auto added = writer_.add(record); !added.ok()) return added;
    }
    return {};
  }

  data::CacheWriter& writer_;
  std::uint32_t labels_ = 0;
};

}  // namespace

Result<void> write_test_cache(const run::NodeHost& host, const sparse_engine::Model& model,
                              const TestSet& test, const std::string& path) {
  auto writer = data::CacheWriter::create(host.disk, path);
  if (!writer.ok()) return writer.error();
  CacheBlocks blocks(model, **writer);
  if (auto read = read_test_set(host, test, blocks); !read.ok()) return read;
  const sparse::NetworkShape& shape = model.network.shape;
  return (*writer)->finish({.features = static_cast<std::uint32_t>(shape.features),
                            .labels = std::max(static_cast<std::uint32_t>(shape.labels), blocks.labels())});
}

Result<sparse_engine::Metrics> metrics_of_ranks(const run::NodeHost& host, const sparse_engine::Model& model,
                                                const std::string& path,
                                                std::span<const std::uint32_t> ranks) {
  const auto records = data::CachedDataset::open(host.disk, path, host.compute);
  if (!records.ok()) return records.error();
  if ((*records)->label_entries() != ranks.size()) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = path,
                 .what = "the nodes did not measure these test records",
                 .got = fmt::format("{} ranks", ranks.size()),
                 .expected = fmt::format("{}, one for each label", (*records)->label_entries()),
                 .fix = "look whether all nodes run the same version"};
  }
  sparse_engine::Evaluator evaluator(model.label_count, model.training_rows);
  for (std::uint64_t i = 0; i < (*records)->size(); ++i) {
    const auto truth = (*records)->record(RecordIndex{i}).labels;
    evaluator.add_ranks(ranks.first(truth.size()), truth);
    ranks = ranks.subspan(truth.size());
  }
  return evaluator.metrics();
}

}  // namespace gossamer::commands
