// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/model_export.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "run/test_machine.h"
#include "tensors/safetensors.h"

namespace gossamer::commands {
namespace {

constexpr std::array<ExportFormat, 3> kAll = {ExportFormat::kSafetensors, ExportFormat::kTorch,
                                              ExportFormat::kWord2vec};

// Two named features, three labels with or without names.
sparse_engine::Model exported_model(bool label_names) {
  sparse_engine::Model model;
  model.network = sparse::Network({.features = 2, .labels = 3, .hidden = 16}, sparse::Moments::kNone);
  for (std::size_t h = 0; h < 16; ++h) model.network.embedding.weights(1)[h] = static_cast<float>(h);
  model.label_count = {3, 1, 2};
  model.feature_names.add("red fox");
  model.feature_names.add("owl");
  if (label_names) {
    for (const char* name : {"a", "b", "c"}) model.label_names.add(name);
  }
  return model;
}

Result<ExportResult> run(host::Disk& disk, const sparse_engine::Model& model, ExportFormat format,
                         VectorsOf vectors = VectorsOf::kFeatures) {
  return export_model(
      disk, model,
      {.path = "out", .format = format, .vectors = vectors, .stop_requested = [] { return false; }});
}

template <class T>
std::vector<T> values_of(const tensors::TensorView& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

std::string text_of(const tensors::TensorView& tensor) {
  const std::vector<char> bytes = values_of<char>(tensor);
  return {bytes.begin(), bytes.end()};
}

// Claim: the safetensors file holds the weights by name, the names, and how to use them.
TEST(ModelExport, Safetensors) {
  host::SimDisk disk;
  const auto result = run(disk, exported_model(true), ExportFormat::kSafetensors);
  ASSERT_TRUE(result.ok()) << result.error().message();
  const auto text = host::read_text(disk, "out");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(result->bytes, text->size());
  const auto tensors = tensors::parse_safetensors("out", std::as_bytes(std::span(*text)));
  ASSERT_TRUE(tensors.ok()) << tensors.error().message();
  EXPECT_EQ(result->entries, tensors->size());
  EXPECT_EQ(tensors->at("embedding.weight").shape, (std::vector<std::uint64_t>{2, 16}));
  EXPECT_EQ(tensors->at("output.weight").shape, (std::vector<std::uint64_t>{3, 16}));
  EXPECT_EQ(text_of(tensors->at("label_names.bytes")), "abc");
  EXPECT_EQ(values_of<std::uint64_t>(tensors->at("label_names.begin")),
            (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(text_of(tensors->at("feature_names.bytes")), "red foxowl");
  EXPECT_EQ(values_of<std::uint64_t>(tensors->at("feature_names.begin")),
            (std::vector<std::uint64_t>{0, 7, 10}));
  EXPECT_NE(text->find(R"("activation":"relu")"), std::string::npos);
}

// Claim: a safetensors file has the weighting of features where the model has one. Its metadata says whether.
TEST(ModelExport, WeightingOfFeatures) {
  for (const bool weighted : {true, false}) {
    host::SimDisk disk;
    sparse_engine::Model model = exported_model(true);
    if (weighted) model.weighting.idf = {0.5F, 2};
    ASSERT_TRUE(run(disk, model, ExportFormat::kSafetensors).ok());
    const std::string text = *host::read_text(disk, "out");
    const auto tensors = tensors::parse_safetensors("out", std::as_bytes(std::span(text)));
    ASSERT_TRUE(tensors.ok()) << tensors.error().message();
    ASSERT_EQ(tensors->contains("weighting.idf"), weighted);
    if (weighted) {
      EXPECT_EQ(values_of<float>(tensors->at("weighting.idf")), (std::vector<float>{0.5F, 2}));
    }
    EXPECT_NE(text.find(weighted ? R"(\"idf\": true)" : R"(\"idf\": false)"), std::string::npos);
  }
}

// Claim: the torch file has the names of the features, then those of the labels, each in its order.
TEST(ModelExport, TorchHasNames) {
  host::SimDisk disk;
  ASSERT_TRUE(run(disk, exported_model(true), ExportFormat::kTorch).ok());
  const std::string text = *host::read_text(disk, "out");
  std::size_t at = 0;
  for (const char* const part : {"feature_names", "red fox", "owl", "label_names"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part;
  }
}

// Claim: each line of word2vec text is a name with its own vector, of features and of labels.
TEST(ModelExport, Word2vecHasVectorsByName) {
  sparse_engine::Model model = exported_model(true);
  for (std::size_t label = 0; label < 3; ++label)
    model.network.output.weights(label)[0] = static_cast<float>(10 + label);
  for (const VectorsOf vectors : {VectorsOf::kFeatures, VectorsOf::kLabels}) {
    const bool features = vectors == VectorsOf::kFeatures;
    host::SimDisk disk;
    ASSERT_TRUE(run(disk, model, ExportFormat::kWord2vec, vectors).ok());
    std::istringstream lines(*host::read_text(disk, "out"));
    std::string line;
    std::vector<std::string> found;
    while (std::getline(lines, line)) found.push_back(line);
    std::string zeros;
    for (int h = 1; h < 16; ++h) zeros += " 0";
    std::string counted;
    for (int h = 0; h < 16; ++h) counted += " " + std::to_string(h);
    const std::vector<std::string> expected =
        features ? std::vector<std::string>{"2 16", "red_fox 0" + zeros, "owl" + counted}
                 : std::vector<std::string>{"3 16", "a 10" + zeros, "b 11" + zeros, "c 12" + zeros};
    EXPECT_EQ(found, expected);
  }
}

// An existing file is never overwritten, and nothing is left beside it.
TEST(ModelExport, KeepsWhatIsThere) {
  host::SimDisk disk;
  run::testing::write(disk, "out", "mine");
  for (const ExportFormat format : kAll) {
    const auto result = run(disk, exported_model(true), format);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  }
  EXPECT_EQ(*disk.list("."), std::vector<std::string>{"out"});
  EXPECT_EQ(*host::read_text(disk, "out"), "mine");
}

// word2vec text needs names. The message says what could be exported instead.
TEST(ModelExport, NoNames) {
  host::SimDisk disk;
  const auto labels = run(disk, exported_model(false), ExportFormat::kWord2vec, VectorsOf::kLabels);
  ASSERT_FALSE(labels.ok());
  EXPECT_EQ(labels.error().kind, ErrorKind::kUsage);
  EXPECT_NE(labels.error().fix.find("without --labels"), std::string::npos);
  sparse_engine::Model model = exported_model(true);
  model.feature_names = {};
  const auto features = run(disk, model, ExportFormat::kWord2vec);
  ASSERT_FALSE(features.ok());
  EXPECT_NE(features.error().fix.find("--labels"), std::string::npos);
  EXPECT_TRUE(disk.list(".")->empty());
  EXPECT_TRUE(run(disk, model, ExportFormat::kWord2vec, VectorsOf::kLabels).ok());
}

// A stop leaves no file, whole or half.
TEST(ModelExport, Stop) {
  for (const ExportFormat format : kAll) {
    host::SimDisk disk;
    const auto result = export_model(
        disk, exported_model(true), {.path = "out", .format = format, .stop_requested = [] { return true; }});
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->stopped);
    EXPECT_TRUE(disk.list(".")->empty());
  }
}

// A failure of any single operation is an error and leaves nothing, unless the file was whole already. A
// crash at any operation leaves the whole file, or none of that name.
TEST(ModelExport, EveryFault) {
  const sparse_engine::Model model = exported_model(true);
  for (const ExportFormat format : kAll) {
    host::SimDisk good;
    ASSERT_TRUE(run(good, model, format).ok());
    const std::string whole = *host::read_text(good, "out");
    host::SimDisk rehearsal;
    ASSERT_TRUE(run(rehearsal, model, format).ok());
    for (std::uint64_t k = 0; k < rehearsal.operations(); ++k) {
      host::SimDisk failing({.seed = k + 1, .fail_at_operation = k});
      EXPECT_FALSE(run(failing, model, format).ok()) << k;
      const std::vector<std::string> left = *failing.list(".");
      for (const std::string& name : left) {
        EXPECT_EQ(name, "out") << k;
        EXPECT_EQ(*host::read_text(failing, name), whole) << k;
      }
      host::SimDisk crashing({.seed = k + 1, .crash_at_operation = k});
      EXPECT_FALSE(run(crashing, model, format).ok()) << k;
      const auto later = crashing.after_crash();
      if (*later->exists("out")) {
        EXPECT_EQ(*host::read_text(*later, "out"), whole) << k;
      }
    }
  }
}

// A disk that runs full is an error of the disk. The unfinished file is removed.
TEST(ModelExport, FullDisk) {
  for (const ExportFormat format : kAll) {
    host::SimDisk disk({.capacity_bytes = 50});
    const auto result = run(disk, exported_model(true), format);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, ErrorKind::kFailed);
    EXPECT_TRUE(disk.list(".")->empty());
  }
}

}  // namespace
}  // namespace gossamer::commands
