// SPDX-License-Identifier: Apache-2.0
#include "node/node_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "host/api/files.h"
#include "run/test_machine.h"

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const cluster::RunEvent kLost{
    .kind = "lost", .peer = {NodeId(3), Incarnation(9)}, .epoch = Epoch(7), .text = "it is \"silent\""};

// One event and one remark, as the console and events.jsonl show them.
struct Told {
  std::string console;
  std::string events;
};
Told tell(LogOptions options) {
  run::testing::SimMachine machine;
  EXPECT_TRUE(machine.disk.make_directories("run").ok());
  {
    NodeLog log(machine.host(), "run", options);
    log.name("5f2c", NodeId(1));
    log.event(kLost);
    log.remark(LogLevel::kInfo, Epoch(), "a remark\x1b[31m");
    EXPECT_EQ(log.counts(), (std::map<std::string, std::uint64_t>{{"lost", 1}}));
  }
  return {machine.console.text, *host::read_text(machine.disk, "run/events.jsonl")};
}

// An event is a line of events.jsonl at every level, with all that is known of it.
TEST(NodeLog, KeepsEvents) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kOff}) {
    const auto event = nlohmann::json::parse(tell({.level = level}).events);
    EXPECT_EQ(event["event"], "lost");
    EXPECT_EQ(event["run"], "5f2c");
    EXPECT_EQ(event["node"], 3);
    EXPECT_EQ(event["incarnation"], 9);
    EXPECT_EQ(event["epoch"], 7);
    EXPECT_EQ(event["text"], kLost.text);
  }
}

// Each format has time, level and place, and lets no peer write to the terminal.
TEST(NodeLog, ShowsLines) {
  EXPECT_THAT(tell({.format = LogFormat::kText}).console,
              MatchesRegex("..:..:.. epoch 7: lost node 3: it is \"silent\"\n..:..:.. a remark\\?\\[31m\n"));
  const std::string logfmt = tell({.format = LogFormat::kLogfmt}).console;
  EXPECT_THAT(logfmt,
              HasSubstr("Z level=warning run=5f2c node=1 epoch=7 event=lost peer=3 peer_incarnation=9 "
                        "text=\"it is \\\"silent\\\"\"\n"));
  EXPECT_THAT(logfmt, HasSubstr("Z level=info run=5f2c node=1 epoch=0 text=\"a remark\\u001b[31m\"\n"));
  const std::string json = tell({.format = LogFormat::kJson}).console;
  const auto line = nlohmann::json::parse(json.substr(0, json.find('\n')));
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["node"], 1);
  EXPECT_EQ(line["peer"], 3);
  EXPECT_EQ(line["text"], kLost.text);
  EXPECT_THAT(line["time"].get<std::string>(), MatchesRegex("....-..-..T..:..:......Z"));
}

// Strangers are refused in one line a second. The next line says how many refusals it stands for.
TEST(NodeLog, CountsRefusals) {
  run::testing::SimMachine machine;
  {
    NodeLog log(machine.host(), "run", {});
    for (const int ms : {0, 1, 999, 1000, 1001, 2000})
      log.refusal("1.2.3.4:5", {.what = "no token"}, Epoch(2), Instant{} + from_milliseconds(ms));
    EXPECT_EQ(log.counts().at("enrol_refused"), 3u);
  }
  EXPECT_THAT(machine.console.text,
              MatchesRegex("..:..:.. epoch 2: enrol_refused: 1.2.3.4:5: no token\n"
                           "..:..:.. epoch 2: enrol_refused: 1.2.3.4:5: no token; and 2 more before it\n"
                           "..:..:.. epoch 2: enrol_refused: 1.2.3.4:5: no token; and 1 more before it\n"));
}

// A level shows its own lines and worse ones.
TEST(NodeLog, LeavesOutWhatIsNotWanted) {
  EXPECT_EQ(tell({.level = LogLevel::kOff}).console, "");
  EXPECT_EQ(tell({.level = LogLevel::kError}).console, "");
  const std::string warnings = tell({.level = LogLevel::kWarning}).console;
  EXPECT_THAT(warnings, HasSubstr("lost"));
  EXPECT_THAT(warnings, ::testing::Not(HasSubstr("remark")));
}

// Links that come and go are told at level debug alone. Messages are never told.
TEST(NodeLog, TellsOfLinks) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo}) {
    run::testing::SimMachine machine;
    {
      NodeLog log(machine.host(), "run", {.level = level});
      log.link(net::OpenFailed{.node = NodeId(4), .reason = {.what = "nobody is there"}}, Epoch(2));
      log.link(net::BulkFailed{.node = NodeId(4), .reason = {.what = "nobody is there"}}, Epoch(2));
      log.link(net::Arrived{}, Epoch(2));
    }
    const std::string shown = machine.console.text;
    EXPECT_EQ(shown.find("open_failed node 4: nobody is there") != std::string::npos,
              level == LogLevel::kDebug);
    EXPECT_EQ(shown.find("bulk_failed node 4: nobody is there") != std::string::npos,
              level == LogLevel::kDebug);
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), level == LogLevel::kDebug ? 2 : 0);
  }
}

// Claim: a member that has lacked the same for a minute names those that owe it, once. Each message that
// comes, each exchange that follows and each new view begins the minute anew.
TEST(NodeLog, NamesWhoIsAwaited) {
  run::testing::SimMachine machine;
  {
    NodeLog log(machine.host(), "run", {.level = LogLevel::kWarning});
    int asked = 0;
    std::optional<cluster::Awaited> lacks;
    const auto until = [&](double from, double to, Epoch epoch) {
      for (int i = 0; from + 0.1 * i < to; ++i) {
        const auto look = [&] {
          ++asked;
          return lacks;
        };
        log.awaits(look, epoch, Instant{} + from_seconds(from + 0.1 * i));
      }
      const auto counted = log.counts().find("awaits");
      return counted == log.counts().end() ? std::uint64_t{0} : counted->second;
    };
    EXPECT_EQ(until(0, 100, Epoch(1)), 0U) << "it waits for nobody";
    EXPECT_EQ(asked, 100) << "it looks once a second";
    lacks = {.exchange = 7, .messages = 3, .nodes = {NodeId(4), NodeId(5)}};
    EXPECT_EQ(until(100, 155, Epoch(1)), 0U);
    lacks->messages = 2;
    EXPECT_EQ(until(155, 210, Epoch(1)), 0U);
    lacks->exchange = 8;
    EXPECT_EQ(until(210, 265, Epoch(1)), 0U);
    EXPECT_EQ(until(265, 320, Epoch(2)), 0U);
    EXPECT_EQ(until(320, 400, Epoch(2)), 2U);
    EXPECT_EQ(until(400, 1000, Epoch(2)), 2U) << "once";
    lacks->nodes = {};
    EXPECT_EQ(until(1000, 1100, Epoch(2)), 2U) << "nobody owes it";
  }
  EXPECT_THAT(machine.console.text, HasSubstr("epoch 2: awaits node 4: for 60 s it has not sent"));
  EXPECT_THAT(machine.console.text, HasSubstr("epoch 2: awaits node 5: for 60 s it has not sent"));
}

// A lane that stays away is a warning, and an event of its own: a person may have to open a port.
TEST(NodeLog, NamesABlockedLane) {
  run::testing::SimMachine machine;
  {
    NodeLog log(machine.host(), "run", {.level = LogLevel::kWarning});
    log.link(net::LaneBlocked{.peer = {NodeId(4), Incarnation(9)},
                              .lane = host::Lane::kBulk,
                              .reason = {.where = "node-4 at 10.0.0.1:2", .what = "refused"}},
             Epoch(2));
    EXPECT_EQ(log.counts().at("lane_blocked"), 1U);
  }
  EXPECT_THAT(machine.console.text, HasSubstr("epoch 2: lane_blocked node 4: the bulk lane has had no"));
  EXPECT_THAT(machine.console.text, HasSubstr("node-4 at 10.0.0.1:2: refused"));
}

}  // namespace
}  // namespace gossamer::node
