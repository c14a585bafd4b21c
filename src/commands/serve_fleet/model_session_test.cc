// SPDX-License-Identifier: Apache-2.0
#include "commands/serve_fleet/model_session.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/test_random_model.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using sparse_engine::FusionTerm;

// Each scorer has its own favourite. Training row r has feature r and label r alone, the net always answers
// 3, and 7 is the most frequent label. All views together put the label of the nearest row last.
sparse_engine::Model model_of_favourites() {
  sparse_engine::Model model =
      sparse_engine::testing::random_model({.features = 12, .labels = 12, .hidden = 32, .rows = 12});
  model.label_names = {};
  for (std::uint32_t row = 0; row < 12; ++row) model.network.bias[row] = row == 3 ? 1000.0F : 0.0F;
  model.label_count.assign(12, 1);
  model.label_count[7] = 9;
  sparse_engine::Instances& rows = *model.instances;
  rows.feature_begin.clear();
  rows.feature.clear();
  rows.label.clear();
  for (std::uint32_t row = 0; row < 12; ++row) {
    rows.feature_begin.push_back(row);
    rows.feature.push_back(row);
    rows.label.push_back(row);
  }
  rows.feature_begin.push_back(12);
  rows.label_begin = rows.feature_begin;
  rows.value.assign(12, 1.0F);
  model.fusion.weights = {};
  model.fusion.weights[FusionTerm::kInput] = -10;
  return model;
}

// One record for each label, 3 more of label 3, and a line that is no record.
void put_model_and_records(SimMachine& machine) {
  ASSERT_TRUE(machine.disk.make_directories("run").ok());
  ASSERT_TRUE(sparse_engine::save_model(machine.disk, "run/model", model_of_favourites()).ok());
  std::string text;
  for (const int label : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 3, 3, 3})
    text += std::to_string(label) + " " + std::to_string(label) + ":1\n";
  write(machine.disk, "test.txt", text);
  write(machine.disk, "bad.txt", "0 x\n" + text);
}

// Claim: a measurement asks what the flags say: all views together, the net alone, the nearest training rows,
// or the most frequent labels. The shares of right first answers are known.
TEST(MeasureModel, AsksTheScorerThatIsWanted) {
  SimMachine machine;
  put_model_and_records(machine);
  const auto precision = [&](bool net_alone, const std::string& baseline) {
    const auto report = measure_model(
        machine.host(),
        {.model = {.directory = "run", .net_alone = net_alone}, .data = "test.txt", .baseline = baseline});
    EXPECT_TRUE(report.ok()) << report.error().message();
    return report.ok() ? nlohmann::json::parse(report->json)["metrics"]["P@1"].get<double>() : -1;
  };
  EXPECT_EQ(precision(false, ""), 0);
  EXPECT_NEAR(precision(true, ""), 100.0 * 4 / 15, 1e-9);
  EXPECT_EQ(precision(false, "nearest"), 100);
  EXPECT_NEAR(precision(false, "frequent"), 100.0 / 15, 1e-9);
}

// Claim: with nodes, a missing file of records is told before anything is opened. Standard input is not
// missed.
TEST(MeasureModel, MissesItsDataFirst) {
  SimMachine machine;
  const auto where = [&](const std::string& data) {
    const auto report =
        measure_model(machine.host(), {.model = {.directory = "none", .nodes = ModelNodes()}, .data = data});
    return report.ok() ? std::string("no error") : report.error().where;
  };
  EXPECT_EQ(where("gone.txt"), "gone.txt");
  EXPECT_TRUE(where("-").starts_with("none")) << where("-");
}

// Claim: a session answers with the net alone where that is wanted.
TEST(OpenSession, AnswersWithTheNetAlone) {
  SimMachine machine;
  put_model_and_records(machine);
  for (const bool net_alone : {true, false}) {
    auto session = open_session(machine.host(), {.directory = "run", .top = 12, .net_alone = net_alone});
    ASSERT_TRUE(session.ok()) << session.error().message();
    nlohmann::json answer;
    const std::vector<Query> queries = {{.text = "5:1", .place = "here"}};
    const auto done = (*session)->answer(
        queries, [&answer](std::string_view line) { answer = nlohmann::json::parse(line); });
    ASSERT_TRUE(done.ok()) << done.error().message();
    const auto& labels = answer["labels"];
    ASSERT_EQ(labels.size(), 12U);
    EXPECT_EQ(labels[0]["label"] == 3, net_alone);
    EXPECT_EQ(labels[11]["label"] == 5, !net_alone);
  }
}

// Claim: a measurement leaves out as many bad lines as it may, and no more.
TEST(MeasureModel, SkipsBadLines) {
  SimMachine machine;
  put_model_and_records(machine);
  for (const std::uint64_t skip_bad : {0U, 1U}) {
    const auto report = measure_model(
        machine.host(), {.model = {.directory = "run"}, .data = "bad.txt", .skip_bad = skip_bad});
    ASSERT_EQ(report.ok(), skip_bad == 1);
    if (!report.ok()) continue;
    EXPECT_EQ(nlohmann::json::parse(report->json)["samples"], 15);
  }
}

}  // namespace
}  // namespace gossamer::commands
