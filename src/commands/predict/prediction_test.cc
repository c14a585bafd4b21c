// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <string>

#include "commands/records/data_import.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/test_random_model.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using sparse_engine::testing::random_model;
using ::testing::HasSubstr;

sparse_engine::Model named_model() {
  return random_model({.features = 30, .labels = 12, .hidden = 32, .rows = 40, .feature_names = true});
}

// Test records over the features of random_model, by number or by name.
std::string records(int count, bool names) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    nlohmann::ordered_json features =
        names ? nlohmann::ordered_json::object() : nlohmann::ordered_json::array();
    for (const int f : {i % 30, (7 * i + 3) % 30 == i % 30 ? (i + 1) % 30 : (7 * i + 3) % 30}) {
      if (names) {
        features["feature " + std::to_string(f)] = 1.5;
      } else {
        features.push_back({f, 1.5});
      }
    }
    const nlohmann::ordered_json line = {{"features", features},
                                         {"labels", {"label " + std::to_string(i % 12), "unheard of"}}};
    text += line.dump() + "\n";
  }
  return text;
}

Result<sparse_engine::Metrics> measure(const run::NodeHost& host, const sparse_engine::Model& model,
                                       const std::string& path) {
  auto source = find_source(host.disk, path, std::nullopt);
  if (!source.ok()) return source.error();
  return evaluate_model(host, model, {.source = *source});
}

std::string import_test(const run::NodeHost& host, const std::string& path) {
  const std::string out = path + ".imported";
  const auto done =
      import_data(host, {.kind = data::RecordFormat::kJsonlText, .sources = {path}, .directory = out});
  EXPECT_TRUE(done.ok()) << done.error().message();
  return out;
}

// Records by number, by name, and imported with names measure alike. Names find their features in whatever
// order they come, over several blocks.
TEST(Evaluate, NumbersAndNamesAgree) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  const sparse_engine::Model named = named_model();
  sparse_engine::Model numbered = named_model();
  numbered.feature_names = {};
  const int count = static_cast<int>(5 * sparse_engine::kQueryBlock) + 3;
  write(machine.disk, "numbers.jsonl", records(count, false));
  write(machine.disk, "names.jsonl", records(count, true));
  const auto by_number = measure(host, numbered, "numbers.jsonl");
  ASSERT_TRUE(by_number.ok()) << by_number.error().message();
  EXPECT_EQ(by_number->samples, static_cast<std::uint64_t>(count));
  for (const std::string& path : {std::string("names.jsonl"), import_test(host, "names.jsonl")}) {
    const auto by_name = measure(host, named, path);
    ASSERT_TRUE(by_name.ok()) << by_name.error().message();
    EXPECT_EQ(metrics_json(*by_name), metrics_json(*by_number)) << path;
  }
  EXPECT_FALSE(machine.said("not in the model"));
}

// Names that the model does not know are left out, and their number is told.
TEST(Evaluate, TellsUnknownNames) {
  SimMachine machine;
  write(machine.disk, "t.jsonl",
        "{\"features\": {\"feature 1\": 1, \"nonsense\": 2}, \"labels\": [\"label 1\"]}\n"
        "{\"features\": {\"nonsense\": 1}, \"labels\": [\"label 2\"]}\n");
  const auto metrics = measure(machine.host(), named_model(), "t.jsonl");
  ASSERT_TRUE(metrics.ok()) << metrics.error().message();
  EXPECT_THAT(machine.console.text, HasSubstr("2 of 3 feature names"));
  EXPECT_THAT(machine.console.text, HasSubstr("'nonsense'"));
}

// Claim: so it is with numbers that the model does not know, in each form of a test set.
TEST(Evaluate, TellsUnknownNumbers) {
  sparse_engine::Model model = named_model();
  model.feature_names = {};
  model.label_names = {};
  for (const std::string name : {"t.txt", "t.jsonl", "t.jsonl.imported"}) {
    SimMachine machine;
    const run::NodeHost host = machine.host();
    write(machine.disk, "t.txt", "1 5:1 30:2 31:1\n2 29:1\n3 40:1\n");
    write(machine.disk, "t.jsonl",
          "{\"features\": [[5, 1], [30, 2], [31, 1]], \"labels\": [1]}\n"
          "{\"features\": [[29, 1]], \"labels\": [2]}\n{\"features\": [[40, 1]], \"labels\": [3]}\n");
    if (name.ends_with("imported")) import_test(host, "t.jsonl");
    const auto metrics = measure(host, model, name);
    ASSERT_TRUE(metrics.ok()) << metrics.error().message();
    EXPECT_THAT(machine.console.text, HasSubstr("3 of 5 features of the test records")) << name;
    EXPECT_THAT(machine.console.text, HasSubstr("such as '30'")) << name;
  }
}

// A test set of another kind than the training records is refused with its path, imported or not.
TEST(Evaluate, RefusesOtherKinds) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  write(machine.disk, "numbers.jsonl", records(5, false));
  write(machine.disk, "names.jsonl", records(5, true));
  write(machine.disk, "numbers.txt", "2 30 12\n1 3:1\n2 4:1\n");
  write(machine.disk, "text.jsonl", "{\"text\": \"words\", \"labels\": [\"label 1\"]}\n");
  sparse_engine::Model numbered = named_model();
  numbered.feature_names = {};
  const sparse_engine::Model named = named_model();
  const sparse_engine::Model text = random_model({.features = 30, .labels = 12, .text = true});
  const std::string numbers_in = import_test(host, "numbers.jsonl");
  const std::string names_in = import_test(host, "names.jsonl");
  const std::vector<std::pair<const sparse_engine::Model*, std::vector<std::string>>> cases = {
      {&numbered, {"names.jsonl", names_in, "text.jsonl"}},
      {&named, {"numbers.jsonl", numbers_in, "numbers.txt", "text.jsonl"}},
      {&text, {"numbers.jsonl", numbers_in, "numbers.txt", "names.jsonl", names_in}}};
  for (const auto& [model, paths] : cases) {
    for (const std::string& path : paths) {
      const auto metrics = measure(host, *model, path);
      ASSERT_FALSE(metrics.ok()) << path;
      EXPECT_EQ(metrics.error().kind, ErrorKind::kUsage) << metrics.error().message();
      EXPECT_THAT(metrics.error().where, HasSubstr(path));
    }
  }
}

// Labels that no training record had are counted and told. A test set of them alone is measured as 0, or
// refused where the request says so.
TEST(Evaluate, TellsUnseenLabels) {
  SimMachine machine;
  sparse_engine::Model model = named_model();
  model.feature_names = {};
  model.label_count.assign(12, 1);
  model.label_count[3] = 0;
  write(machine.disk, "some.jsonl",
        "{\"features\": [[1, 1]], \"labels\": [\"label 1\", \"label 3\"]}\n"
        "{\"features\": [[2, 1]], \"labels\": [\"unheard\"]}\n");
  write(machine.disk, "none.jsonl", "{\"features\": [[1, 1]], \"labels\": [\"unheard\"]}\n");
  const auto some = measure(machine.host(), model, "some.jsonl");
  ASSERT_TRUE(some.ok()) << some.error().message();
  EXPECT_EQ(some->labels, 3U);
  EXPECT_EQ(some->unseen_labels, 2U);
  EXPECT_THAT(machine.console.text, HasSubstr("2 of 3 labels"));
  EXPECT_THAT(machine.console.text, HasSubstr("'label 3'"));
  EXPECT_THAT(metrics_text(*some), HasSubstr("2 of their 3 labels were never seen"));
  const Source source{.path = "none.jsonl", .format = data::RecordFormat::kJsonlNumbers};
  EXPECT_TRUE(evaluate_model(machine.host(), model, {.source = source}).ok());
  const auto refused = evaluate_model(machine.host(), model,
                                      {.source = source, .none_seen = EvaluateRequest::NoneSeen::kRefused});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  EXPECT_THAT(refused.error().got, HasSubstr("'unheard'"));
}

// Records of which the model knows nothing are counted among those with labels, told, and measured as blank
// queries. A test set of them alone is refused where the request says so.
TEST(Evaluate, TellsRecordsOfWhichNothingIsKnown) {
  SimMachine machine;
  run::NodeHost host = machine.host();
  host.verbosity = run::Verbosity::kQuiet;  // no progress, but warnings
  sparse_engine::Model model = named_model();
  model.label_count.assign(12, 1);
  const std::string known = "{\"features\": {\"feature 1\": 1}, \"labels\": [\"label 1\"]}\n";
  const std::string unknown = "{\"features\": {\"never\": 1}, \"labels\": [\"label 1\"]}\n";
  const std::string zero = "{\"features\": {\"feature 1\": 0}, \"labels\": [\"label 1\"]}\n";
  const std::string bare = "{\"features\": {\"never\": 1}}\n";  // left out
  write(machine.disk, "some.jsonl", known + unknown + zero + bare);
  write(machine.disk, "none.jsonl", unknown + bare);
  const auto with = EvaluateRequest::NoneSeen::kRefused;
  const auto source = [](std::string path) {
    return Source{.path = std::move(path), .format = data::RecordFormat::kJsonlNames};
  };
  const auto some = evaluate_model(host, model, {.source = source("some.jsonl"), .none_seen = with});
  ASSERT_TRUE(some.ok()) << some.error().message();
  EXPECT_EQ(some->samples, 3U);
  EXPECT_EQ(some->nothing_known, 2U);
  EXPECT_THAT(machine.console.text,
              HasSubstr("warning: 2 test records have no word or feature that the model knows"));
  EXPECT_THAT(metrics_text(*some), HasSubstr("the model knows nothing of 2 of them"));
  EXPECT_TRUE(evaluate_model(host, model, {.source = source("none.jsonl")}).ok());
  const auto refused = evaluate_model(host, model, {.source = source("none.jsonl"), .none_seen = with});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(refused.error().got, "1 record");
}

// Test records whose labels could only match by chance are refused: none at all, numbers beside names, and
// names beside numbers, imported or not.
TEST(Evaluate, RefusesOtherLabels) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  sparse_engine::Model names = named_model();
  names.feature_names = {};
  sparse_engine::Model numbers = named_model();
  numbers.feature_names = {};
  numbers.label_names = {};
  write(machine.disk, "none.jsonl", "{\"features\": [[1, 1]], \"tags\": [\"label 1\"]}\n");
  write(machine.disk, "names.jsonl", "{\"features\": [[1, 1]], \"labels\": [\"label 1\"]}\n");
  write(machine.disk, "numbers.jsonl", "{\"features\": [[1, 1]], \"labels\": [1]}\n");
  write(machine.disk, "numbers.txt", "1 1:1\n");
  const auto kind = [&](const sparse_engine::Model& model, const std::string& path) {
    const auto metrics = measure(host, model, path);
    return metrics.ok() ? "" : name(metrics.error().kind);
  };
  for (const std::string& path : {std::string("none.jsonl"), import_test(host, "none.jsonl")}) {
    EXPECT_STREQ(kind(names, path), "bad-data") << path;
    EXPECT_STREQ(kind(numbers, path), "bad-data") << path;
  }
  for (const std::string& path : {std::string("names.jsonl"), import_test(host, "names.jsonl")}) {
    EXPECT_STREQ(kind(names, path), "") << path;
    EXPECT_STREQ(kind(numbers, path), "bad-data") << path;
  }
  for (const std::string& path :
       {std::string("numbers.jsonl"), std::string("numbers.txt"), import_test(host, "numbers.jsonl")}) {
    EXPECT_STREQ(kind(names, path), "bad-data") << path;
    EXPECT_STREQ(kind(numbers, path), "") << path;
  }
}

// Claim: labels by number measure alike from a file and imported. They are the model's own numbers.
TEST(Evaluate, ImportedNumbersAreTheModels) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  sparse_engine::Model model = named_model();
  model.feature_names = {};
  model.label_names = {};
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "{\"features\": [[" + std::to_string(i % 30) + ", 1]], \"labels\": [" + std::to_string(i % 5) +
            "]}\n";
  }
  write(machine.disk, "numbers.jsonl", text);
  const auto plain = measure(host, model, "numbers.jsonl");
  const auto imported = measure(host, model, import_test(host, "numbers.jsonl"));
  ASSERT_TRUE(plain.ok() && imported.ok());
  EXPECT_EQ(metrics_json(*imported), metrics_json(*plain));
}

// Bad lines count against skip_bad and are told.
TEST(Evaluate, SkipsBadLines) {
  SimMachine machine;
  write(machine.disk, "t.txt", "1 3:1\n1 x\n2 4:1\n");
  sparse_engine::Model model = named_model();
  model.feature_names = {};
  model.label_names = {};
  const Source source{.path = "t.txt", .format = data::RecordFormat::kXmc};
  const auto strict = evaluate_model(machine.host(), model, {.source = source});
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().where.substr(0, 7), "t.txt:2");
  const auto lenient = evaluate_model(machine.host(), model, {.source = source, .skip_bad = 1});
  ASSERT_TRUE(lenient.ok()) << lenient.error().message();
  EXPECT_EQ(lenient->samples, 2U);
  EXPECT_TRUE(machine.said("left out 1 bad line:"));
}

// A median rank beyond the list is null in JSON, which knows no infinity.
TEST(Metrics, InfinityIsNull) {
  SimMachine machine;
  write(machine.disk, "t.txt", "11 3:1\n");
  sparse_engine::Model model = random_model({.features = 30, .labels = 2000, .hidden = 16, .rows = 0});
  model.label_names = {};
  // The true label is ranked last of all.
  for (std::uint32_t l = 0; l < 2000; ++l) model.network.bias[l] = l == 11 ? -1e6F : 0;
  const auto metrics = evaluate_model(machine.host(), model,
                                      {.source = {.path = "t.txt", .format = data::RecordFormat::kXmc}});
  ASSERT_TRUE(metrics.ok()) << metrics.error().message();
  const auto json = nlohmann::json::parse(metrics_json(*metrics));
  EXPECT_TRUE(json["median_rank"].is_null()) << json;
  EXPECT_EQ(json["P@1"], 0.0);
  EXPECT_THAT(metrics_text(*metrics), HasSubstr("beyond the list"));
}

std::vector<nlohmann::json> answer(const run::NodeHost& host, sparse_engine::Model model,
                                   const std::vector<Query>& queries, Result<void>* status) {
  auto session = PredictSession::create(host, std::move(model), {.top = 3});
  EXPECT_TRUE(session.ok());
  std::vector<nlohmann::json> lines;
  *status = (*session)->answer(
      queries, [&lines](std::string_view line) { lines.push_back(nlohmann::json::parse(line)); });
  return lines;
}

// Claim: each query gets one line, in order, with named labels and falling scores. That holds over more than
// one block. Unknown names are counted where there are any, and change nothing else.
TEST(PredictSession, AnswersInOrder) {
  SimMachine machine;
  std::vector<Query> queries;
  for (int i = 0; i < 600; ++i) {
    const std::string known = "\"feature " + std::to_string(i % 30) + "\": 1";
    queries.push_back({.text = "{\"features\": {" + known + "}}", .place = "a"});
    queries.push_back({.text = "{\"features\": {\"x\": 2, " + known + ", \"y\": 1}}", .place = "b"});
  }
  Result<void> status;
  const auto lines = answer(machine.host(), named_model(), queries, &status);
  ASSERT_TRUE(status.ok()) << status.error().message();
  ASSERT_EQ(lines.size(), queries.size());
  ASSERT_GT(lines.size(), kPredictBlock);
  for (std::size_t feature = 0; feature < 30; ++feature) {
    const auto alone = answer(machine.host(), named_model(), {queries[2 * feature]}, &status);
    ASSERT_EQ(alone.size(), 1U);
    for (std::size_t i = 2 * feature; i < lines.size(); i += 60) EXPECT_EQ(lines[i], alone[0]) << i;
  }
  EXPECT_NE(lines[0]["labels"], lines[4]["labels"]);
  for (std::size_t i = 0; i < lines.size(); i += 2) {
    ASSERT_EQ(lines[i]["labels"].size(), 3U);
    EXPECT_EQ(lines[i]["labels"], lines[i + 1]["labels"]) << i;
    EXPECT_FALSE(lines[i].contains("unknown_features"));
    EXPECT_EQ(lines[i + 1]["unknown_features"], 2);
    const auto& best = lines[i]["labels"][0];
    EXPECT_EQ(best["name"], "label " + std::to_string(best["label"].get<int>()));
    EXPECT_GE(best["score"], lines[i]["labels"][1]["score"]);
  }
}

std::vector<nlohmann::json> answer_with(const run::NodeHost& host, const PredictSession::Options& options,
                                        const sparse_engine::FusionOptions& fusion) {
  sparse_engine::Model model = named_model();
  model.fusion.calibration = fusion.calibration;
  model.fusion.net_calibration = fusion.net_calibration;
  auto session = PredictSession::create(host, std::move(model), options);
  if (!session.ok()) return {};
  std::vector<nlohmann::json> lines;
  const std::vector<Query> queries = {{.text = R"({"features": {"feature 1": 1}})", .place = "a"}};
  const auto done = (*session)->answer(
      queries, [&lines](std::string_view line) { lines.push_back(nlohmann::json::parse(line)); });
  EXPECT_TRUE(done.ok());
  return lines;
}

// Probabilities fall with the scores, and do not depend on how many labels are asked for. A threshold leaves
// out those below it. A model without a calibration has none, and refuses a threshold.
TEST(PredictSession, TellsProbabilities) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  const sparse_engine::Calibration calibration{.log = 1, .rest = 0.5F, .offset = 0.2F};
  for (const Scorer scorer : {Scorer::kFused, Scorer::kNet}) {
    const sparse_engine::FusionOptions fitted{.calibration = calibration, .net_calibration = calibration};
    const auto five = answer_with(host, {.top = 5, .scorer = scorer}, fitted);
    const auto two = answer_with(host, {.top = 2, .scorer = scorer}, fitted);
    ASSERT_EQ(five.size(), 1U);
    ASSERT_EQ(five[0]["labels"].size(), 5U);
    double before = 1;
    for (const auto& label : five[0]["labels"]) {
      const double p = label["probability"];
      EXPECT_LE(p, before);
      EXPECT_GE(p, 0);
      before = p;
    }
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(two[0]["labels"][i], five[0]["labels"][i]);
    const double third = five[0]["labels"][2]["probability"];
    const double second = five[0]["labels"][1]["probability"];
    ASSERT_LT(third, second);
    const auto some =
        answer_with(host, {.top = 5, .scorer = scorer, .threshold = (second + third) / 2}, fitted);
    ASSERT_EQ(some[0]["labels"].size(), 2U);
    const auto none = answer_with(host, {.top = 5, .scorer = scorer, .threshold = 1}, fitted);
    EXPECT_TRUE(none[0]["labels"].empty());
    const auto plain = answer_with(host, {.top = 5, .scorer = scorer}, {});
    EXPECT_FALSE(plain[0]["labels"][0].contains("probability"));
    EXPECT_TRUE(answer_with(host, {.top = 5, .scorer = scorer, .threshold = 0.5}, {}).empty());
  }
}

// Claim: an answer names the keys of its query that nothing looks at, and the session counts such queries.
TEST(PredictSession, NamesIgnoredKeys) {
  SimMachine machine;
  auto session = PredictSession::create(machine.host(), named_model(), {.top = 3});
  ASSERT_TRUE(session.ok());
  const std::vector<Query> queries = {
      {.text = R"({"features": {"feature 1": 1}})", .place = "1"},
      {.text = R"({"features": {"feature 1": 1}, "id": 7, "b": 1})", .place = "2"},
      {.text = R"({"features": {"feature 1": 1}, "c": 1})", .place = "3"}};
  std::vector<nlohmann::json> lines;
  const auto done = (*session)->answer(
      queries, [&lines](std::string_view json) { lines.push_back(nlohmann::json::parse(json)); });
  ASSERT_TRUE(done.ok());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_FALSE(lines[0].contains("ignored_keys"));
  EXPECT_EQ(lines[1]["ignored_keys"], (nlohmann::json{"id", "b"}));
  EXPECT_EQ(lines[1]["labels"], lines[0]["labels"]);
  EXPECT_EQ((*session)->ignored_keys().queries, 2U);
  EXPECT_EQ((*session)->ignored_keys().first, "id");
}

// Claim: a query whose features all have the value 0 says as little as a blank one. One other value is
// enough.
TEST(PredictSession, ValuesOfZeroSayNothing) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  auto session = PredictSession::create(host, named_model(), {.top = 3});
  ASSERT_TRUE(session.ok());
  const std::vector<Query> queries = {
      {.text = "", .place = "1"},
      {.text = R"({"features": {"feature 1": 0, "feature 2": 0}})", .place = "2"},
      {.text = R"({"features": {"feature 1": 0, "feature 2": 1}})", .place = "3"}};
  std::vector<nlohmann::json> lines;
  const auto done = (*session)->answer(
      queries, [&lines](std::string_view json) { lines.push_back(nlohmann::json::parse(json)); });
  ASSERT_TRUE(done.ok());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1], lines[0]);
  EXPECT_TRUE(lines[1].contains("nothing_known"));
  EXPECT_FALSE(lines[2].contains("nothing_known"));
  EXPECT_EQ((*session)->nothing_known(), 2U);
}

// A query that cannot be read ends the answers. Those before it are answered, and the error has its place.
TEST(PredictSession, StopsAtABadQuery) {
  SimMachine machine;
  Result<void> status;
  const auto lines = answer(machine.host(), named_model(),
                            {{.text = R"({"features": {"feature 1": 1}})", .place = "stdin:1"},
                             {.text = R"({"features": {"feature 1": "x"}})", .place = "stdin:2"},
                             {.text = R"({"features": {"feature 2": 1}})", .place = "stdin:3"}},
                            &status);
  EXPECT_EQ(lines.size(), 1U);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(status.error().where.substr(0, 7), "stdin:2");
}

// A model is found in a run directory and in a model directory. The error for
// another directory says what it is.
TEST(OpenModel, FindsTheModel) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  ASSERT_TRUE(machine.disk.make_directories("run").ok());
  const auto none = open_model(host, "run");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(none.error().fix, "check the path");
  write(machine.disk, "run/run.toml", "");
  EXPECT_EQ(open_model(host, "run").error().fix, "finish it: gossamer train --resume --out run");
  EXPECT_THAT(open_model(host, "run").error().message(), HasSubstr("not finished"));
  ASSERT_TRUE(sparse_engine::save_model(machine.disk, "run/model", named_model()).ok());
  for (const char* path : {"run", "run/model"}) {
    const auto model = open_model(host, path);
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(model->feature_names[29], "feature 29");
  }
}

}  // namespace
}  // namespace gossamer::commands
