// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engines/sparse/model/model_json.h"
#include "engines/sparse/model/model_tensors.h"
#include "engines/sparse/model/test_random_model.h"
#include "engines/sparse/predict/predictor.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

using Json = nlohmann::json;
using testing::OwnedRows;
using testing::random_model;
using testing::random_rows;

Model small_model(std::uint64_t seed = 1) {
  return random_model({.features = 9, .labels = 7, .hidden = 16, .rows = 6, .seed = seed, .text = true});
}

void save(host::Disk& disk, const Model& model, const SaveModelOptions& options = {}) {
  const auto saved = save_model(disk, "m", model, options);
  ASSERT_TRUE(saved.ok()) << saved.error().message();
}

bool same_weights(const sparse::RowTable& a, const sparse::RowTable& b) {
  return a.rows() == b.rows() && a.width() == b.width() &&
         std::equal(a.all_weights().begin(), a.all_weights().end(), b.all_weights().begin());
}

bool same_layer(const sparse::DenseLayer& a, const sparse::DenseLayer& b) {
  const auto bias = [](const sparse::DenseLayer& layer) {
    return layer.bias.span().first(layer.weights.rows());
  };
  return same_weights(a.weights, b.weights) && std::ranges::equal(bias(a), bias(b));
}

// Compares bit by bit.
bool same_model(const Model& a, const Model& b) {
  if (a.task != b.task || a.activation != b.activation || a.training_rows != b.training_rows ||
      a.label_count != b.label_count || a.label_names.bytes != b.label_names.bytes ||
      a.label_names.begin != b.label_names.begin || a.feature_names.bytes != b.feature_names.bytes ||
      a.feature_names.begin != b.feature_names.begin || !(a.fusion == b.fusion) ||
      a.weighting.counts != b.weighting.counts || !(a.neighbours == b.neighbours) ||
      a.weighting.l2 != b.weighting.l2 || a.weighting.idf != b.weighting.idf ||
      a.network.shape.dense != b.network.shape.dense ||
      !std::ranges::equal(a.network.dense, b.network.dense, same_layer) ||
      !same_weights(a.network.embedding, b.network.embedding) ||
      !same_weights(a.network.output, b.network.output) ||
      !std::ranges::equal(a.network.bias.span(), b.network.bias.span()) ||
      a.instances.has_value() != b.instances.has_value() || a.line != b.line ||
      a.featurizer.has_value() != b.featurizer.has_value()) {
    return false;
  }
  if (a.featurizer &&
      !(a.featurizer->options == b.featurizer->options && a.featurizer->features == b.featurizer->features &&
        a.featurizer->document_frequency == b.featurizer->document_frequency &&
        a.featurizer->documents == b.featurizer->documents)) {
    return false;
  }
  if (!a.instances) return true;
  const Instances& x = *a.instances;
  const Instances& y = *b.instances;
  return x.feature_begin == y.feature_begin && x.feature == y.feature && x.value == y.value &&
         x.label_begin == y.label_begin && x.label == y.label &&
         std::ranges::equal(x.hidden.span(), y.hidden.span());
}

// A network whose rows come one by one makes the same files as one in memory, byte by byte.
TEST(ModelFile, RowsMayComeFromElsewhere) {
  const Model model = random_model({.features = 9, .labels = 7, .hidden = 16, .dense = {32}, .rows = 6});
  host::SimDisk disk;
  save(disk, model, {.max_shard_bytes = 600});
  Model shape = random_model({.features = 9, .labels = 7, .hidden = 16, .dense = {32}, .rows = 6});
  shape.network = sparse::Network(model.network.shape, sparse::Moments::kNone);
  std::vector<tensors::TensorSource> network;
  for (const tensors::TensorSource& tensor : tensors_of(model, {})) {
    if (!tensor.name.starts_with("embedding") && !tensor.name.starts_with("dense") &&
        !tensor.name.starts_with("output"))
      continue;
    tensors::TensorSource& one = network.emplace_back(tensor);
    const std::uint64_t row_bytes = tensor.bytes() / tensor.shape[0];
    const std::uint64_t stride = tensor.row_stride_bytes > 0 ? tensor.row_stride_bytes : row_bytes;
    one.data = nullptr;
    one.row_stride_bytes = 0;
    one.read_row = [data = tensor.data, stride](std::uint64_t row, std::span<std::byte> out) {
      std::copy_n(data + row * stride, out.size(), out.begin());
    };
  }
  ASSERT_EQ(network.size(), 5U);
  ASSERT_TRUE(save_model(disk, "other", shape, {.max_shard_bytes = 600, .network = network}).ok());
  const auto files = disk.list("m");
  ASSERT_TRUE(files.ok());
  EXPECT_GT(files->size(), 4U);
  for (const std::string& file : *files)
    EXPECT_EQ(*host::read_text(disk, "other/" + file), *host::read_text(disk, "m/" + file)) << file;
}

// A model that is saved and loaded is the same, whatever parts it has, in one shard or many. Saving again
// replaces it.
TEST(ModelFile, RoundTrip) {
  for (const std::uint64_t limit : {std::uint64_t{1}, std::uint64_t{500}, tensors::kMaxShardBytes}) {
    host::SimDisk disk;
    for (int variant = 0; variant < 6; ++variant) {
      SCOPED_TRACE(::testing::Message() << "limit " << limit << " variant " << variant);
      Model model =
          random_model({.features = 9,
                        .labels = 7,
                        .hidden = variant == 1 ? 48U : 16U,
                        .dense = variant == 5 ? std::vector<std::size_t>{48, 32} : std::vector<std::size_t>{},
                        .rows = variant == 2 ? 0U : 6U,
                        .seed = 3 + static_cast<std::uint64_t>(variant),
                        .text = variant == 0,
                        .feature_names = variant == 4});
      if (variant == 3) {
        model.label_names = {};
        model.weighting.idf.clear();
        model.activation = kernels::Activation::kTanh;
        model.fusion.weights[FusionTerm::kCentroid] = -0.1F;
        model.fusion.calibration = Calibration{.log = 0.7F, .rest = 0, .offset = -1.25F};
        model.neighbours = {.idf_power = 0.7F, .pivot = 0.1F, .local_scaling = 0.4F};
      }
      save(disk, model, {.max_shard_bytes = limit});
      const auto loaded = load_model(disk, "m/");
      ASSERT_TRUE(loaded.ok()) << loaded.error().message();
      EXPECT_TRUE(same_model(model, *loaded));
      const auto names = disk.list("m");
      ASSERT_TRUE(names.ok());
      if (limit == 1) {
        EXPECT_GT(names->size(), 6U);
      }
      if (limit == tensors::kMaxShardBytes) {
        EXPECT_EQ(*names, (std::vector<std::string>{"model-00001-of-00001.safetensors", "model.json"}));
      }
      EXPECT_EQ(disk.list("")->size(), 1U) << "no .tmp or .old is left";
    }
  }
}

// The loaded model predicts bit for bit like the one in memory.
TEST(ModelFile, PredictsAlike) {
  const Model model = random_model({});
  host::SimDisk disk;
  save(disk, model);
  const auto loaded = load_model(disk, "m");
  ASSERT_TRUE(loaded.ok());
  Rng rng(1, Purpose::kTest, 1);
  const OwnedRows queries = random_rows(rng, 50, 20);
  host::SimCompute compute({});
  std::vector<std::vector<Scored>> answers;
  for (const Model* each : {&model, &*loaded}) {
    auto predictor =
        Predictor::create(*each, kernels::kernels_for(kernels::best_isa()), compute, default_options(*each));
    ASSERT_TRUE(predictor.ok());
    PredictionBlock out;
    EXPECT_TRUE((*predictor)->predict(queries.view(), 10, out).ok());
    answers.push_back(out.entries);
  }
  EXPECT_EQ(answers[0], answers[1]);
}

// A crash at any disk operation of the first save leaves no model or the whole one. In a second save it
// leaves the old one or the new one. The next save always works.
TEST(ModelFile, SurvivesACrashAnywhere) {
  const Model before = small_model(1);
  const Model after = small_model(2);
  const SaveModelOptions options{.max_shard_bytes = 700};
  for (const bool replace : {false, true}) {
    const auto prepare = [&](host::SimDisk& disk) {
      if (replace) save(disk, before, options);
    };
    host::SimDisk rehearsal;
    prepare(rehearsal);
    rehearsal.restart_count({});
    save(rehearsal, after, options);
    for (std::uint64_t k = 0; k <= rehearsal.operations(); ++k) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE(::testing::Message() << "replace " << replace << " operation " << k << " seed " << seed);
        host::SimDisk disk;
        prepare(disk);
        disk.restart_count({.seed = seed, .crash_at_operation = k});
        const bool done = save_model(disk, "m", after, options).ok();
        const auto later = disk.after_crash();
        const auto loaded = load_model(*later, "m");
        if (loaded.ok()) {
          EXPECT_TRUE(same_model(*loaded, after) || (replace && !done && same_model(*loaded, before)));
        } else {
          EXPECT_TRUE(!replace && !done) << loaded.error().message();
        }
        const auto again = save_model(*later, "m", after, options);
        ASSERT_TRUE(again.ok()) << again.error().message();
        const auto final_model = load_model(*later, "m");
        ASSERT_TRUE(final_model.ok()) << final_model.error().message();
        EXPECT_TRUE(same_model(*final_model, after));
      }
    }
  }
}

// An error at any disk operation, or a full disk, is reported, and the old or the new model is there at once.
TEST(ModelFile, SurvivesAnErrorAnywhere) {
  const Model before = small_model(1);
  const Model after = small_model(2);
  host::SimDisk rehearsal;
  save(rehearsal, before);
  rehearsal.restart_count({});
  save(rehearsal, after);
  for (std::uint64_t k = 0; k < rehearsal.operations(); ++k) {
    SCOPED_TRACE(k);
    host::SimDisk disk;
    save(disk, before);
    disk.restart_count({.fail_at_operation = k});
    const auto saved = save_model(disk, "m", after);
    const auto loaded = load_model(disk, "m");
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_TRUE(same_model(*loaded, after) || (!saved.ok() && same_model(*loaded, before)));
  }
  for (const std::uint64_t room : {10U, 100U, 3000U}) {
    host::SimDisk disk;
    save(disk, before);
    const auto used = disk.file_size("m/model.json");
    ASSERT_TRUE(used.ok());
    disk.restart_count(
        {.capacity_bytes = *used + *disk.file_size("m/model-00001-of-00001.safetensors") + room});
    EXPECT_FALSE(save_model(disk, "m", after).ok()) << room;
    const auto loaded = load_model(disk, "m");
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_TRUE(same_model(*loaded, before));
  }
}

void write(host::Disk& disk, const std::string& path, const std::string& text) {
  ASSERT_TRUE(host::replace_file(disk, path, text).ok());
}

constexpr const char* kShard = "m/model-00001-of-00001.safetensors";

// Every byte of every file counts. After a change of any one, loading fails as bad data or a refused format.
// Only bytes without meaning for the model may change without a failure (white space, other tools' fields).
TEST(ModelFile, NoticesEveryChangedByte) {
  const Model model = small_model();
  host::SimDisk disk;
  save(disk, model);
  for (const char* path : {"m/model.json", kShard}) {
    const std::string good = *host::read_text(disk, path);
    std::size_t unnoticed = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 0x15);
      write(disk, path, bad);
      const auto loaded = load_model(disk, "m");
      if (loaded.ok()) {
        ++unnoticed;
      } else {
        ASSERT_TRUE(loaded.error().kind == ErrorKind::kBadData || loaded.error().kind == ErrorKind::kRefused)
            << path << " byte " << i << ": " << loaded.error().message();
      }
    }
    if (std::string(path) == kShard) {
      EXPECT_EQ(unnoticed, 0U);
    }
    for (const std::size_t length : {std::size_t{0}, std::size_t{7}, good.size() / 2, good.size() - 1}) {
      write(disk, path, good.substr(0, length));
      const bool only_newline_lost = length + 1 == good.size() && std::string(path) != kShard;
      EXPECT_EQ(load_model(disk, "m").ok(), only_newline_lost) << path << " " << length;
    }
    write(disk, path, good);
  }
  EXPECT_TRUE(load_model(disk, "m").ok());
}

// Rewrites a field of model.json.
void edit(host::Disk& disk, const std::function<void(Json&)>& change) {
  Json json = Json::parse(*host::read_text(disk, "m/model.json"));
  change(json);
  write(disk, "m/model.json", json.dump());
}

// Changes bytes of the only shard and mends its checksum, so that only the checks of content are left.
void edit_shard(host::Disk& disk, const std::function<void(std::string&)>& change) {
  std::string text = *host::read_text(disk, kShard);
  change(text);
  write(disk, kShard, text);
  edit(disk, [&](Json& json) {
    json["shards"][0]["bytes"] = text.size();
    json["shards"][0]["xxh3"] = fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
  });
}

// False fields are refused, with the field in the message.
TEST(ModelFile, RefusesFieldsThatLie) {
  struct Lie {
    const char* field;
    std::function<void(Json&)> change;
  };
  const std::vector<Lie> lies = {
      {"format", [](Json& j) { j["format"] = 4; }},
      {"dense", [](Json& j) { j["format"] = 3; }},
      {"dense", [](Json& j) { j["format"] = 3, j["dense"] = Json::array(); }},
      {"dense", [](Json& j) { j["format"] = 3, j["dense"] = {24}; }},
      {"dense.1.bias", [](Json& j) { j["format"] = 3, j["dense"] = {16}; }},
      {"format", [](Json& j) { j.erase("format"); }},
      {"engine", [](Json& j) { j["engine"] = "pipeline"; }},
      {"task", [](Json& j) { j["task"] = 3; }},
      {"features", [](Json& j) { j["features"] = 0; }},
      {"features", [](Json& j) { j["features"] = -1; }},
      {"embedding.weight", [](Json& j) { j["features"] = 4294967295U; }},
      {"featurizer.features", [](Json& j) { j["features"] = 8; }},
      {"model.json gives", [](Json& j) { j["labels"] = 4294967295U; }},
      {"hidden", [](Json& j) { j["hidden"] = 17; }},
      {"embedding.weight", [](Json& j) { j["hidden"] = 32; }},
      {"activation", [](Json& j) { j["activation"] = "sigmoid"; }},
      {"training_rows", [](Json& j) { j["training_rows"] = "6"; }},
      {"weighting.l2", [](Json& j) { j["weighting"].erase("l2"); }},
      {"weighting.idf", [](Json& j) { j["weighting"]["idf"] = false; }},
      {"label_names", [](Json& j) { j["label_names"] = nullptr; }},
      {"instances.rows", [](Json& j) { j["instances"]["rows"] = -3; }},
      {"instances.", [](Json& j) { j["instances"]["rows"] = 4294967294U; }},
      {"instances.", [](Json& j) { j["instances"]["feature_entries"] = 1; }},
      {"fusion.candidates", [](Json& j) { j["fusion"]["candidates"] = 0; }},
      {"fusion.weights.hidden", [](Json& j) { j["fusion"]["weights"]["hidden"] = 1001; }},
      {"fusion.weights.net", [](Json& j) { j["fusion"]["weights"].erase("net"); }},
      {"instances.weighting.pivot", [](Json& j) { j["instances"]["weighting"]["pivot"] = 1.5; }},
      {"instances.weighting.local_scaling",
       [](Json& j) { j["instances"]["weighting"]["local_scaling"] = -1; }},
      {"instances.weighting.idf_power", [](Json& j) { j["instances"]["weighting"]["idf_power"] = -1; }},
      {"instances.weighting.counts", [](Json& j) { j["instances"]["weighting"]["counts"] = "loud"; }},
      {"fusion.net_calibration.log", [](Json& j) { j["fusion"]["net_calibration"] = {{"rest", 1}}; }},
      {"fusion.vote_floor", [](Json& j) { j["fusion"]["vote_floor"] = "nan"; }},
      {"featurizer.subword_max", [](Json& j) { j["featurizer"]["subword_max"] = 17; }},
      {"featurizer.subword_max", [](Json& j) { j["featurizer"]["subword_max"] = 2; }},
      {"featurizer.features", [](Json& j) { j["featurizer"]["features"] = 10; }},
      {"featurizer", [](Json& j) { j["featurizer"] = "x"; }},
      {"shards", [](Json& j) { j["shards"] = Json::array(); }},
      {"shards[0].file", [](Json& j) { j["shards"][0]["file"] = "../x"; }},
      {"shards[0].xxh3", [](Json& j) { j["shards"][0]["xxh3"] = "123"; }},
  };
  for (const Lie& lie : lies) {
    host::SimDisk disk;
    save(disk, small_model());
    edit(disk, lie.change);
    const auto loaded = load_model(disk, "m");
    ASSERT_FALSE(loaded.ok()) << lie.field;
    EXPECT_NE(loaded.error().message().find(lie.field), std::string::npos) << loaded.error().message();
    const bool other_format = loaded.error().what == "a model of another format";
    const ErrorKind expected = other_format ? ErrorKind::kRefused : ErrorKind::kBadData;
    EXPECT_EQ(loaded.error().kind, expected) << loaded.error().message();
  }
}

// The rules for reading lines travel with the model. They are refused out of range, or beside features
// without names.
TEST(ModelFile, Lines) {
  Model model = random_model({.features = 9, .labels = 7, .hidden = 16, .rows = 6, .feature_names = true});
  model.task = "next-item";
  model.line = data::LineShape{.last = 7, .decay = 0.3F};
  host::SimDisk disk;
  save(disk, model);
  const auto loaded = load_model(disk, "m");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_TRUE(same_model(model, *loaded));
  const Json good = Json::parse(*host::read_text(disk, "m/model.json"));
  const auto refused = [&](const Json& header, const std::string& field) {
    EXPECT_TRUE(host::replace_file(disk, "m/model.json", header.dump()).ok());
    const auto bad = load_model(disk, "m");
    ASSERT_FALSE(bad.ok()) << field;
    EXPECT_EQ(bad.error().kind, ErrorKind::kBadData);
    EXPECT_NE(bad.error().message().find(field), std::string::npos) << bad.error().message();
  };
  Json lying = good;
  lying["line"]["last"] = 0;
  refused(lying, "line.last");
  lying = good;
  lying["line"]["decay"] = 1.5;
  refused(lying, "line.decay");
  lying = good;
  lying["line"]["scale"] = "mean";
  refused(lying, "line.scale");
  lying = good;
  lying["feature_names"] = false;
  refused(lying, "line");
}

// A network of one hidden layer is written as format 2, and one with more as format 3. A reader of format 2
// refuses format 3.
TEST(ModelFile, FormatSaysWhetherThereAreDenseLayers) {
  for (const bool deep : {false, true}) {
    host::SimDisk disk;
    save(disk, random_model(
                   {.features = 9, .labels = 7, .hidden = 16, .dense = std::vector<std::size_t>(deep, 32)}));
    const auto text = host::read_text(disk, "m/model.json", 1 << 20);
    ASSERT_TRUE(text.ok());
    const Json json = Json::parse(*text);
    EXPECT_EQ(json["format"], deep ? 3 : 2);
    EXPECT_EQ(json.contains("dense"), deep);
  }
}

// A directory from before features had names is read as one without. Feature names and a featurizer exclude
// each other. Two features of one name are refused.
TEST(ModelFile, FeatureNames) {
  host::SimDisk disk;
  const Model numbered = random_model({.features = 9, .labels = 7, .hidden = 16, .rows = 6});
  save(disk, numbered);
  edit(disk, [](Json& j) { ASSERT_EQ(j.erase("feature_names"), 1U); });
  const auto old = load_model(disk, "m");
  ASSERT_TRUE(old.ok()) << old.error().message();
  EXPECT_TRUE(same_model(*old, numbered));

  const auto refused = [&disk](const char* part) {
    const auto loaded = load_model(disk, "m");
    ASSERT_FALSE(loaded.ok()) << part;
    EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData);
    EXPECT_NE(loaded.error().message().find(part), std::string::npos) << loaded.error().message();
  };
  save(disk, small_model());
  edit(disk, [](Json& j) { j["feature_names"] = true; });
  refused("feature_names");
  save(disk, numbered);
  edit(disk, [](Json& j) { j["feature_names"] = true; });
  refused("feature_names.begin");

  Model twice = random_model({.features = 9, .labels = 7, .hidden = 16, .rows = 6});
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "c"}) twice.feature_names.add(name);
  save(disk, twice);
  refused("'c' twice");
}

// Unusable indices, offsets and numbers are found although checksums are right. The message names the file
// and the place in its tensor.
TEST(ModelFile, RefusesContentThatLies) {
  struct Lie {
    const char* tensor;
    std::size_t element;
    std::uint32_t value;
    const char* place;
  };
  const std::vector<Lie> lies = {
      {"instances.feature", 0, 9, "9 at 0, in record 0"},
      {"instances.label", 0, 7, "7 at 0, in record"},
      {"instances.feature_begin", 0, 1, "1 at 0"},
      {"instances.feature_begin", 1, 0xFFFFFFFF, "4294967295 at 1"},
      {"instances.label_begin", 6, 100, "100 at 6"},
      {"instances.value", 0, 0x7F800000, "at 0"},
      {"embedding.weight", 5, 0x7FC00000, "row 0, column 5"},
      {"output.weight", 21, 0xFF800000, "row 1, column 5"},
      {"output.bias", 1, 0x7F800001, "at 1"},
      {"weighting.idf", 2, 0x7F800000, "at 2"},
      {"instances.hidden", 0, 0x7F803F80, "row 0, column 1"},
      {"label_names.begin", 2, 1000, "1000 at 2"},
      {"featurizer.features.begin", 2, 1000, "1000 at 2"},
      {"featurizer.document_frequency", 2, 0, "feature 2"},
      {"featurizer.document_frequency", 0, 91, "feature 0"},
  };
  for (const Lie& lie : lies) {
    host::SimDisk disk;
    save(disk, small_model());
    edit_shard(disk, [&](std::string& text) {
      std::uint64_t header_length = 0;
      for (std::size_t i = 0; i < 8; ++i)
        header_length |= std::uint64_t{static_cast<std::uint8_t>(text[i])} << (8 * i);
      const Json header = Json::parse(text.substr(8, header_length));
      const std::size_t size = header[lie.tensor]["dtype"] == "U64" ? 8 : 4;
      const std::size_t at =
          8 + header_length + header[lie.tensor]["data_offsets"][0].get<std::size_t>() + lie.element * size;
      for (std::size_t i = 0; i < 4; ++i) text[at + i] = static_cast<char>(lie.value >> (8 * i) & 0xFF);
    });
    const auto loaded = load_model(disk, "m");
    ASSERT_FALSE(loaded.ok()) << lie.tensor;
    EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData);
    EXPECT_NE(loaded.error().message().find(lie.tensor), std::string::npos) << loaded.error().message();
    EXPECT_EQ(loaded.error().where, kShard);
    EXPECT_NE(loaded.error().got.find(lie.place), std::string::npos) << loaded.error().message();
  }
}

// A missing directory is the world's fault and names the path.
TEST(ModelFile, MissingDirectory) {
  host::SimDisk disk;
  const auto loaded = load_model(disk, "nowhere");
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message().find("nowhere"), std::string::npos);
}

}  // namespace
}  // namespace gossamer::sparse_engine
