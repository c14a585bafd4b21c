// SPDX-License-Identifier: Apache-2.0
//
// Test records as rows of a model's features and numbers of its labels. Labels and features are matched by
// name where the model has names, else by number. TestBlocks hands them on a block at a time, so that memory
// does not grow with the test set.
//
//   blocks.queries().add(row, features);  // for each record
//   blocks.truth(labels);                 // and its labels
//   blocks.run();                         // at the end: the queries that wait
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "commands/records/queries.h"
#include "commands/records/training_data.h"
#include "engines/sparse/model/model.h"
#include "learn/data/name_table.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"
#include "learn/data/rows.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Labels of test records, and those of them that no training record had.
struct UnseenLabels {
  std::uint64_t labels = 0;
  std::uint64_t unseen = 0;
  std::string first = {};  // name or number of an unseen one
};

class TestBlocks {
 public:
  // The model outlives this, and gives the network's shape; its weights are not looked at. `stop` is asked
  // after every block; empty means that nobody stops it.
  TestBlocks(const sparse_engine::Model& model, std::size_t records_per_block,
             std::function<bool()> stop = {})
      : model_(model), records_per_block_(records_per_block), stop_(std::move(stop)), parser_(model) {}
  TestBlocks(const TestBlocks&) = delete;
  TestBlocks& operator=(const TestBlocks&) = delete;
  virtual ~TestBlocks() = default;

  [[nodiscard]] QueryBlock& queries() { return queries_; }
  // For records that are not yet rows of the model's features.
  [[nodiscard]] QueryParser& parser() { return parser_; }
  // Gives the labels, strictly increasing, of the query that was added last. kFailed where `stop` said so.
  [[nodiscard]] Result<void> truth(std::span<const std::uint32_t> labels);
  // Says how the numbers of unseen labels are called. Without it they are called by their numbers.
  void name_labels(const data::NameTable& names);
  [[nodiscard]] const UnseenLabels& unseen() const { return unseen_; }
  // Queries with labels of which the model knows no word and no feature: their answers are those of a blank
  // query.
  [[nodiscard]] std::uint64_t nothing_known() const { return nothing_known_; }
  // Hands on the queries that wait.
  [[nodiscard]] Result<void> run();
  [[nodiscard]] const sparse_engine::Model& model() const { return model_; }

 private:
  // Takes as many queries as label sets.
  [[nodiscard]] virtual Result<void> take(const data::SparseRows& queries, const data::LabelSets& truth) = 0;

  const sparse_engine::Model& model_;
  const std::size_t records_per_block_;
  std::function<bool()> stop_;
  QueryParser parser_;
  QueryBlock queries_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> begin_ = {0};
  UnseenLabels unseen_;
  std::uint64_t nothing_known_ = 0;
  std::uint32_t first_unseen_ = 0;  // where there is one
};

struct TestSet {
  Source source;
  std::uint64_t skip_bad = 0;
};
// Reads the whole test set, and says what the model does not know. kUsage when its features are in another
// form than those of the training records. kBadData where no record has a label, or where labels have names
// and the model's have not, or the other way round.
[[nodiscard]] Result<void> read_test_set(const run::NodeHost& host, const TestSet& test, TestBlocks& blocks);

// Whether a test set calls its labels as the training records do: by name, or by number. Its first label
// tells. kBadData if not, as after the training.
[[nodiscard]] Result<void> check_label_naming(const run::NodeHost& host, const Source& test, bool by_name);

// The readers of the formats (record_formats.h).
[[nodiscard]] Result<data::ReadReport> test_xmlc(data::ByteSource& source, const data::ReadOptions& options,
                                                 TestBlocks& blocks);
[[nodiscard]] Result<data::ReadReport> test_jsonl(data::ByteSource& source, const data::ReadOptions& options,
                                                  TestBlocks& blocks);
// Every position from the second on is a test record, or the target alone.
[[nodiscard]] Result<data::ReadReport> test_sessions(data::ByteSource& source,
                                                     const data::ReadOptions& options, TestBlocks& blocks);
// Every word that the model knows is a test record. Its features are the words around it, as many as a window
// held in training. Words that the model does not know are left out before.
[[nodiscard]] Result<data::ReadReport> test_words(data::ByteSource& source, const data::ReadOptions& options,
                                                  TestBlocks& blocks);

}  // namespace gossamer::commands
