// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/model/lm_model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engines/pipeline/model/test_toy_lm.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/test_overflown_model.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/api/files.h"
#include "host/sim/disk.h"
#include "learn/tokens/byte_tokenizer.h"
#include "learn/tokens/sentencepiece_tokenizer.h"
#include "learn/tokens/test_pieces_module.h"
#include "tensors/model_fields.h"

namespace gossamer::pipeline {
namespace {

using testing::HasSubstr;

constexpr const char* kLmShard = "m/model-00001-of-00001.safetensors";

Result<void> save_toy(host::Disk& disk, std::uint64_t seed, std::uint64_t max_shard_bytes = 1 << 20) {
  const auto model = ToyLm::model(ToyLm::kShape, seed);
  return save_lm_model(disk, "m",
                       {.model = *model, .about = ToyLm::about(), .max_shard_bytes = max_shard_bytes});
}
// Loads what lies there into a toy that begins with other weights.
Result<std::vector<double>> load_toy(host::Disk& disk) {
  const auto opened = open_lm_model(disk, "m");
  if (!opened.ok()) return opened.error();
  const auto model = ToyLm::model(opened->header.about.shape, 99);
  if (auto loaded = load_lm_model(disk, *opened, *model); !loaded.ok()) return loaded.error();
  return weights_of(*model);
}
std::vector<double> toy_weights(std::uint64_t seed) { return weights_of(*ToyLm::model(ToyLm::kShape, seed)); }

// Claim: a model that is saved and loaded has the same bits, in one shard or many. Saving again replaces it.
TEST(LmModelFile, RoundTrip) {
  for (const std::uint64_t limit : {1U, 500U, 1U << 20U}) {
    host::SimDisk disk;
    for (const std::uint64_t seed : {1U, 2U}) {
      ASSERT_TRUE(save_toy(disk, seed, limit).ok());
      const auto opened = open_lm_model(disk, "m/");
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      EXPECT_EQ(opened->header.about, ToyLm::about());
      EXPECT_EQ(opened->directory, "m");
      const auto loaded = load_toy(disk);
      ASSERT_TRUE(loaded.ok()) << loaded.error().message();
      EXPECT_EQ(*loaded, toy_weights(seed));
      EXPECT_EQ(disk.list("")->size(), 1U) << "no .tmp or .old is left";
    }
    EXPECT_EQ(disk.list("m")->size(), limit == 1 ? 10U : limit == 500 ? 5U : 2U);
  }
}

template <class T>
void save_stored(host::Disk& disk, const LmShape& shape, StoredModel<T>& model) {
  LmAbout about = ToyLm::about();
  about.shape = shape;
  const auto saved = save_lm_model(disk, "m", {.model = model, .about = about});
  ASSERT_TRUE(saved.ok()) << saved.error().message();
}
template <class T>
Result<void> load_stored(host::Disk& disk, StoredModel<T>& model) {
  const auto opened = open_lm_model(disk, "m");
  return opened.ok() ? load_lm_model(disk, *opened, model) : opened.error();
}

// Claim: a model in float comes back bit by bit, for all variants of a shape, and the backend is told once
// that its weights changed.
TEST(LmModelFile, EveryVariantComesBack) {
  for (const LmActivation activation : {LmActivation::kGelu, LmActivation::kSwiGlu}) {
    for (const LmPositions positions : {LmPositions::kLearned, LmPositions::kRotary}) {
      for (const LmBiases biases : {LmBiases::kNone, LmBiases::kAllButKey, LmBiases::kAll}) {
        LmShape shape = ToyLm::kShape;
        shape.activation = activation;
        shape.positions = positions;
        shape.biases = biases;
        shape.norm = biases == LmBiases::kNone ? LmNorm::kRms : LmNorm::kLayer;
        host::SimDisk disk;
        StoredModel<float> model(shape, 3);
        save_stored(disk, shape, model);
        StoredModel<float> other(shape, 4);
        ASSERT_NE(weights_of(other), weights_of(model));
        const auto loaded = load_stored(disk, other);
        ASSERT_TRUE(loaded.ok()) << loaded.error().message();
        EXPECT_EQ(weights_of(other), weights_of(model));
        EXPECT_EQ(other.changes(), 1);
      }
    }
  }
}

// Claim: a backend of another type takes the numbers rounded to its own, and refuses what it cannot hold.
TEST(LmModelFile, RoundsToTheTypeOfTheBackend) {
  const LmShape shape = ToyLm::kShape;
  host::SimDisk disk;
  StoredModel<double> wide(shape, 3);
  save_stored(disk, shape, wide);
  StoredModel<float> narrow(shape, 4);
  ASSERT_TRUE(load_stored(disk, narrow).ok());
  std::vector<double> rounded = weights_of(wide);
  for (double& x : rounded) x = static_cast<double>(static_cast<float>(x));
  EXPECT_EQ(weights_of(narrow), rounded);
  EXPECT_NE(rounded, weights_of(wide));
  save_stored(disk, shape, narrow);
  ASSERT_TRUE(load_stored(disk, wide).ok());
  EXPECT_EQ(weights_of(wide), rounded);
  std::get<std::span<double>>(wide.tensors()[0].weights)[7] = 1e300;
  save_stored(disk, shape, wide);
  const auto too_large = load_stored(disk, narrow);
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.error().kind, ErrorKind::kBadData);
  EXPECT_THAT(too_large.error().got, HasSubstr("at 7"));
}

// Claim: a power failure at any disk operation of the first save leaves no model or the whole one. In a
// second save it leaves the old one or the new one. The next save always works.
TEST(LmModelFile, SurvivesACrashAnywhere) {
  for (const bool replace : {false, true}) {
    const auto prepare = [&](host::SimDisk& disk) { ASSERT_TRUE(!replace || save_toy(disk, 1, 700).ok()); };
    host::SimDisk rehearsal;
    prepare(rehearsal);
    rehearsal.restart_count({});
    ASSERT_TRUE(save_toy(rehearsal, 2, 700).ok());
    EXPECT_GT(rehearsal.operations(), 10U);
    for (std::uint64_t k = 0; k <= rehearsal.operations(); ++k) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE(::testing::Message() << "replace " << replace << " operation " << k << " seed " << seed);
        host::SimDisk disk;
        prepare(disk);
        disk.restart_count({.seed = seed, .crash_at_operation = k});
        const bool done = save_toy(disk, 2, 700).ok();
        const auto later = disk.after_crash();
        const auto loaded = load_toy(*later);
        if (loaded.ok()) {
          EXPECT_TRUE(*loaded == toy_weights(2) || (replace && !done && *loaded == toy_weights(1)));
        } else {
          EXPECT_TRUE(!replace && !done) << loaded.error().message();
        }
        ASSERT_TRUE(save_toy(*later, 3).ok());
        EXPECT_EQ(*load_toy(*later), toy_weights(3));
      }
    }
  }
}

// Claim: an error at any disk operation, or a full disk, is reported, and the old or the new model is there
// at once.
TEST(LmModelFile, SurvivesAnErrorAnywhere) {
  host::SimDisk rehearsal;
  ASSERT_TRUE(save_toy(rehearsal, 1).ok());
  const std::uint64_t bytes = *rehearsal.file_size("m/model.json") + *rehearsal.file_size(kLmShard);
  rehearsal.restart_count({});
  ASSERT_TRUE(save_toy(rehearsal, 2).ok());
  for (std::uint64_t k = 0; k < rehearsal.operations(); ++k) {
    SCOPED_TRACE(k);
    host::SimDisk disk;
    ASSERT_TRUE(save_toy(disk, 1).ok());
    disk.restart_count({.fail_at_operation = k});
    const auto saved = save_toy(disk, 2);
    const auto loaded = load_toy(disk);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_TRUE(*loaded == toy_weights(2) || (!saved.ok() && *loaded == toy_weights(1)));
  }
  for (const std::uint64_t room : {10U, 100U, 2000U}) {
    host::SimDisk disk;
    ASSERT_TRUE(save_toy(disk, 1).ok());
    disk.restart_count({.capacity_bytes = bytes + room});
    EXPECT_FALSE(save_toy(disk, 2).ok()) << room;
    EXPECT_EQ(*load_toy(disk), toy_weights(1));
  }
}

// Claim: every byte of a shard counts, and a changed byte of model.json is noticed or has no meaning for the
// weights. A file that is cut off or gone is named.
TEST(LmModelFile, NoticesEveryChangedByte) {
  host::SimDisk disk;
  ASSERT_TRUE(save_toy(disk, 1).ok());
  for (const std::string& path : {std::string("m/model.json"), std::string(kLmShard)}) {
    const std::string good = *host::read_text(disk, path);
    const auto put = [&](const std::string& text) { EXPECT_TRUE(host::replace_file(disk, path, text).ok()); };
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 0x15);
      put(bad);
      const auto loaded = load_toy(disk);
      if (loaded.ok()) {
        EXPECT_NE(path, kLmShard) << "byte " << i;
        EXPECT_EQ(*loaded, toy_weights(1)) << "byte " << i;
      } else {
        EXPECT_TRUE(loaded.error().kind == ErrorKind::kBadData || loaded.error().kind == ErrorKind::kRefused)
            << path << " byte " << i << ": " << loaded.error().message();
      }
    }
    for (const std::size_t length : {std::size_t{0}, std::size_t{7}, good.size() / 2, good.size() - 2}) {
      put(good.substr(0, length));
      const auto loaded = load_toy(disk);
      ASSERT_FALSE(loaded.ok()) << path << " " << length;
      EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData);
      EXPECT_EQ(loaded.error().where, path);
      EXPECT_FALSE(loaded.error().fix.empty());
    }
    ASSERT_TRUE(disk.remove_all(path).ok());
    EXPECT_THAT(load_toy(disk).error().message(), HasSubstr(path));
    put(good);
  }
  EXPECT_TRUE(load_toy(disk).ok());
}

// Writes a directory whose files are what model.json says, with any tensors.
void save_tensors(host::Disk& disk, std::vector<tensors::TensorSource> tensors,
                  std::uint64_t limit = 1 << 20) {
  const auto saved =
      tensors::save_model_directory(disk, "m", {.tensors = std::move(tensors), .max_shard_bytes = limit},
                                    [](const tensors::WrittenShards& files) {
                                      return format_lm_header(ToyLm::about(), tensors::DType::kF64, files);
                                    });
  ASSERT_TRUE(saved.ok()) << saved.error().message();
}

// Claim: a tensor that is missing, not of the shape, there twice, or of another shape or type is refused,
// with its file and name, although all checksums are right.
TEST(LmModelFile, RefusesOtherTensors) {
  const auto model = ToyLm::model(ToyLm::kShape, 1);
  std::vector<tensors::TensorSource> good;
  for (const StageTensor& tensor : model->tensors()) {
    const auto weights = std::get<std::span<double>>(tensor.weights);
    good.push_back({.name = tensor.name,
                    .dtype = tensors::DType::kF64,
                    .shape = tensor.shape,
                    .data = reinterpret_cast<const std::byte*>(weights.data())});
  }
  host::SimDisk disk;
  save_tensors(disk, good);
  ASSERT_EQ(*load_toy(disk), toy_weights(1));
  const auto refused = [&](std::vector<tensors::TensorSource> tensors, const std::string& name,
                           const std::string& got, std::uint64_t limit = 1 << 20) {
    save_tensors(disk, std::move(tensors), limit);
    const auto loaded = load_toy(disk);
    ASSERT_FALSE(loaded.ok()) << name << " " << got;
    EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData) << loaded.error().message();
    EXPECT_EQ(loaded.error().where.substr(0, 1), "m");
    EXPECT_THAT(loaded.error().what, HasSubstr(name));
    EXPECT_THAT(loaded.error().got, HasSubstr(got));
    EXPECT_FALSE(loaded.error().fix.empty());
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    const std::string& name = good[i].name;
    std::vector<tensors::TensorSource> tensors = good;
    // A tensor of a model with more layers takes the place of one that goes, so that no file is too short.
    tensors[i].name = "layers.9.in";
    refused(tensors, "layers.9.in", "no model of this shape has");
    tensors = good;
    tensors.push_back(good[i]);
    refused(tensors, name, "the same name in two shards", 1);
    tensors = good;
    std::swap(tensors[i].shape[0], tensors[i].shape[1]);
    tensors[i].shape.push_back(1);
    refused(tensors, name, "F64 [");
    tensors = good;
    tensors[i].dtype = tensors::DType::kI64;
    refused(tensors, name, "I64 [");
  }
  std::vector<tensors::TensorSource> missing = good;
  missing.erase(missing.begin() + 3);
  refused(missing, good[3].name, "nothing");
}

// Claim: a number that is not finite is refused when a model is loaded and when it is saved. A save that is
// refused leaves the earlier model.
TEST(LmModelFile, RefusesNumbersThatAreNotFinite) {
  host::SimDisk disk;
  ASSERT_TRUE(save_toy(disk, 1).ok());
  const auto model = ToyLm::model(ToyLm::kShape, 2);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    double& weight = std::get<std::span<double>>(model->tensors()[4].weights)[5];
    const double before = weight;
    weight = bad;
    const auto saved = save_lm_model(disk, "m", {.model = *model, .about = ToyLm::about()});
    ASSERT_FALSE(saved.ok());
    EXPECT_EQ(saved.error().got, "tensor " + model->tensors()[4].name + " at 5");
    EXPECT_EQ(*load_toy(disk), toy_weights(1));
    host::SimDisk other;
    ASSERT_TRUE(save_toy(other, 1).ok());
    sparse_engine::testing::overflow(other, "m", model->tensors()[4].name, 5);
    const auto loaded = load_toy(other);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(loaded.error().where, kLmShard);
    EXPECT_THAT(loaded.error().what, HasSubstr(model->tensors()[4].name));
    EXPECT_THAT(loaded.error().got, HasSubstr("at 5"));
    weight = before;
  }
}

// Claim: a shape for which the files are too short is refused before anybody makes a model of it.
TEST(LmModelFile, RefusesAShapeThatTheFilesCannotHold) {
  for (const auto& [field, value] : {std::pair("vocabulary", 1 << 20),
                                     {"context", 1 << 20},
                                     {"width", 65'536},
                                     {"hidden", 1 << 20},
                                     {"layers", 1000}}) {
    host::SimDisk disk;
    ASSERT_TRUE(save_toy(disk, 1).ok());
    nlohmann::json json = nlohmann::json::parse(*host::read_text(disk, "m/model.json"));
    json["model"][field] = value;
    ASSERT_TRUE(host::replace_file(disk, "m/model.json", json.dump()).ok());
    const auto opened = open_lm_model(disk, "m");
    ASSERT_FALSE(opened.ok()) << field;
    EXPECT_EQ(opened.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(opened.error().where, "m/model.json");
    EXPECT_THAT(opened.error().got, HasSubstr("bytes"));
    // Nor do sizes help that only model.json tells.
    json["shards"][0]["bytes"] = std::uint64_t{1} << 60U;
    ASSERT_TRUE(host::replace_file(disk, "m/model.json", json.dump()).ok());
    EXPECT_EQ(open_lm_model(disk, "m").error().where, kLmShard);
  }
}

// Claim: neither engine takes the other's model, and each says whose it is.
TEST(LmModelFile, TellsModelsOfOtherEngines) {
  host::SimDisk disk;
  ASSERT_TRUE(sparse_engine::save_model(
                  disk, "m", sparse_engine::testing::random_model({.features = 9, .labels = 7, .hidden = 16}))
                  .ok());
  const auto sparse = open_lm_model(disk, "m");
  ASSERT_FALSE(sparse.ok());
  EXPECT_EQ(sparse.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(sparse.error().where, "m/model.json");
  EXPECT_EQ(sparse.error().got, "engine 'sparse'");
  ASSERT_TRUE(save_toy(disk, 1).ok());
  const auto lm = sparse_engine::load_model(disk, "m");
  ASSERT_FALSE(lm.ok());
  EXPECT_EQ(lm.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(lm.error().where, "m/model.json");
  EXPECT_EQ(lm.error().got, "engine 'lm'");
}

// Makes bytes, and toys of SentencePiece. It counts its calls.
struct ToyLoader {
  Result<std::unique_ptr<tokens::Tokenizer>> operator()(const std::string& name, std::string model,
                                                        const std::string& where) const {
    ++*calls;
    if (name == "bytes") return std::unique_ptr<tokens::Tokenizer>(std::make_unique<tokens::ByteTokenizer>());
    if (name != tokens::kSentencePieceName)
      return Error{.kind = ErrorKind::kRefused, .where = where, .what = "unknown"};
    auto loaded = tokens::SentencePieceTokenizer::load(tokens::test_pieces::kModule, std::move(model), where);
    if (!loaded.ok()) return loaded.error();
    return std::unique_ptr<tokens::Tokenizer>(*std::move(loaded));
  }
  std::shared_ptr<int> calls = std::make_shared<int>(0);
};

// Claim: a tokenizer's model is saved beside the weights and comes back. One that is gone or damaged is bad
// data, and nothing loads it.
TEST(LmModelFile, KeepsTheModelOfItsTokenizer) {
  host::SimDisk disk;
  const ToyLoader loader;
  const std::string good = tokens::test_pieces::model("good");
  const auto tokenizer = loader("sentencepiece", good, "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message();
  LmAbout about = ToyLm::about();
  about.tokenizer = {.name = "sentencepiece", .digest = (*tokenizer)->digest()};
  about.shape.vocabulary = (*tokenizer)->vocabulary();
  const auto model = ToyLm::model(about.shape, 1);
  ASSERT_TRUE(save_lm_model(disk, "m", {.model = *model, .about = about, .tokenizer = good}).ok());
  const auto opened = open_lm_model(disk, "m");
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(*read_tokenizer(disk, *opened), good);
  const auto again = tokenizer_of(disk, *opened, loader);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ((*again)->model(), good);
  const int calls = *loader.calls;
  for (const bool gone : {false, true}) {
    ASSERT_TRUE(host::replace_file(disk, "m/tokenizer.model", "gooD").ok());
    if (gone) {
      ASSERT_TRUE(disk.remove_all("m/tokenizer.model").ok());
    }
    const Error error = tokenizer_of(disk, *opened, loader).error();
    EXPECT_EQ(error.kind, ErrorKind::kBadData) << error.message();
    EXPECT_EQ(error.where, "m/tokenizer.model");
  }
  EXPECT_EQ(*loader.calls, calls);
}

// Claim: the tokenizer comes back where this program has it with the model's vocabulary; another name,
// digest or vocabulary is refused.
TEST(LmModelFile, HasItsTokenizer) {
  host::SimDisk disk;
  const ToyLoader loader;
  const tokens::ByteTokenizer bytes;
  OpenedLm opened{.directory = "m", .header = {.about = ToyLm::about()}};
  LmAbout& about = opened.header.about;
  about.tokenizer = {.name = std::string(bytes.name()), .digest = bytes.digest()};
  about.shape.vocabulary = bytes.vocabulary();
  const auto tokenizer = tokenizer_of(disk, opened, loader);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer)->digest(), bytes.digest());
  ++about.shape.vocabulary;
  EXPECT_EQ(tokenizer_of(disk, opened, loader).error().kind, ErrorKind::kBadData);
  --about.shape.vocabulary;
  ++about.tokenizer.digest;
  EXPECT_EQ(tokenizer_of(disk, opened, loader).error().kind, ErrorKind::kRefused);
  --about.tokenizer.digest;
  about.tokenizer.name = "words";
  EXPECT_EQ(tokenizer_of(disk, opened, loader).error().where, "m/model.json");
}

// Claim: misuse stops the program: a backend that is not of the shape.
TEST(LmModelFileDeathTest, Misuse) {
  host::SimDisk disk;
  ASSERT_TRUE(save_toy(disk, 1).ok());
  const auto opened = open_lm_model(disk, "m");
  ASSERT_TRUE(opened.ok());
  LmShape other = ToyLm::kShape;
  other.vocabulary = 6;
  const auto model = ToyLm::model(other, 1);
  EXPECT_DEATH((void)load_lm_model(disk, *opened, *model), "vocabulary");
  EXPECT_DEATH((void)save_lm_model(disk, "m", {.model = *model, .about = ToyLm::about()}), "vocabulary");
}

}  // namespace
}  // namespace gossamer::pipeline
