// SPDX-License-Identifier: Apache-2.0
//
// Prints the tables of docs/threads-and-lives.md, which what_it_costs.py compares and writes. They have the
// messages and bytes of each kind, round trips of a join, and how long a death takes, all counted in virtual
// time.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plain_fleet.h"

namespace {

using namespace gossamer;
using costs::Book;
using costs::PlainFleet;
using costs::PlainMember;
using costs::Tally;
using membership::ToCoordinator;
using membership::ToMember;

constexpr double kSecondsOfBeats = 10;
constexpr int kSilences = 100;

// A row of the table of messages: when, what, and a cell for each size of fleet.
struct Row {
  std::string when;
  std::string what;
  std::vector<std::string> cells;
};

std::string cell(const Tally& tally, double share = 1) {
  if (tally.messages == 0) return "none";
  return fmt::format("{:g} of {:.0f}", static_cast<double>(tally.messages) * share,
                     static_cast<double>(tally.bytes) / static_cast<double>(tally.messages));
}

// The messages of a fleet of one size, a row for each kind. The rows of another size have other cells.
class Sizes {
 public:
  explicit Sizes(const PlainFleet::Options& options) : fleet_(options) {}

  std::vector<Row> measure() {
    beats("all at rest, each second", "");
    for (const auto& member : fleet_.members()) member->work();
    beats("each thing takes a step between two beats, each second", ", with its tracks");
    request("a member asks for a lease", &PlainMember::lease, ToCoordinator::kLease, ToMember::kLease);
    request("a member claims a sample", &PlainMember::claim, ToCoordinator::kClaim, ToMember::kClaim);
    fleet_.book() = {};
    fleet_.start_member();
    settle();
    row("a member joins", "Begin", fleet_.book().questions["Begin"]);
    row("", "its answer", fleet_.book().answers["Begin"]);
    row("", "Here, Ready", sum({ToCoordinator::kHere, ToCoordinator::kReady}));
    change();
    fleet_.book() = {};
    fleet_.kill_member();
    settle();
    change("a member is killed");
    lead_again();
    return std::move(rows_);
  }

 private:
  void row(std::string when, std::string what, const Tally& tally, double share = 1) {
    rows_.push_back({std::move(when), std::move(what), {cell(tally, share)}});
  }

  Tally sum(const std::vector<ToCoordinator::KindCase>& kinds) {
    Tally all;
    for (const auto kind : kinds) {
      all.messages += fleet_.book().to_coordinator[kind].messages;
      all.bytes += fleet_.book().to_coordinator[kind].bytes;
    }
    return all;
  }

  // Runs until the view has changed and all messages about it have arrived.
  void settle() {
    fleet_.run_until([this] { return fleet_.settled(); });
    fleet_.run_for(from_seconds(1));
  }

  void beats(const std::string& when, const std::string& with) {
    fleet_.run_for(from_seconds(1));
    Book& book = fleet_.book() = {};
    fleet_.run_for(from_seconds(kSecondsOfBeats));
    const double second = 1 / kSecondsOfBeats;
    const Tally beats = book.to_coordinator[ToCoordinator::kBeat];
    const Tally seen = book.to_members[ToMember::kBeatSeen];
    row(when, "Beat" + with, beats, second);
    row("", "BeatSeen", seen, second);
    // All other frames of links, Acks and Pings among them, and the frames around the messages.
    const Tally around{.messages = book.frames.messages,
                       .bytes = book.frames.bytes - beats.bytes - seen.bytes};
    row("", "all frames of links, without these messages", around, second);
  }

  void request(const std::string& when, void (PlainMember::*ask)(), ToCoordinator::KindCase asked,
               ToMember::KindCase answered) {
    fleet_.book() = {};
    (fleet_.members().front().get()->*ask)();
    fleet_.run_for(from_seconds(1));
    row(when, "the question", fleet_.book().to_coordinator[asked]);
    row("", "its answer", fleet_.book().to_members[answered]);
  }

  void change(const std::string& when = "") {
    row(when, "Change", fleet_.book().to_members[ToMember::kChange]);
    row("", "Frozen", fleet_.book().to_coordinator[ToCoordinator::kFrozen]);
    row("", "Install", fleet_.book().to_members[ToMember::kInstall]);
  }

  void lead_again() {
    fleet_.kill_coordinator();
    fleet_.run_for(from_seconds(1));
    fleet_.book() = {};
    fleet_.start_coordinator();
    fleet_.run_for(from_seconds(2));
    Book& book = fleet_.book();
    row("the coordinator is killed and back a second later", "Lead", book.questions["Lead"]);
    row("", "its answer", book.answers["Lead"]);
    row("", "Here", book.to_coordinator[ToCoordinator::kHere]);
    row("", "Change, Frozen, Install",
        Tally{.messages = book.to_members[ToMember::kChange].messages +
                          book.to_coordinator[ToCoordinator::kFrozen].messages +
                          book.to_members[ToMember::kInstall].messages,
              .bytes = 0});
  }

  PlainFleet fleet_;
  std::vector<Row> rows_;
};

void print_rows(std::string_view name, const std::vector<std::string>& head, const std::vector<Row>& rows) {
  fmt::print("<!-- {} -->\n| {} |\n|{}\n", name, fmt::join(head, " | "),
             fmt::join(std::vector<std::string>(head.size(), "---|"), ""));
  for (const Row& row : rows)
    fmt::print("| {} | {} | {} |\n", row.when, row.what, fmt::join(row.cells, " | "));
  fmt::print("<!-- /{} -->\n", name);
}

void print_messages() {
  const std::vector<PlainFleet::Options> sizes{{.members = 4, .things = 12}, {.members = 32, .things = 1000}};
  std::vector<std::string> head{"when", "message"};
  std::vector<Row> rows;
  for (const PlainFleet::Options& size : sizes) {
    head.push_back(fmt::format("{} members, {} things", size.members, size.things));
    const std::vector<Row> measured = Sizes(size).measure();
    if (rows.empty()) {
      rows = measured;
      continue;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].cells.push_back(measured[i].cells.front());
  }
  print_rows("cost-messages", head, rows);
}

// Prints when each step of a join is reached, in round trips since the node began.
void print_join() {
  const PlainFleet::Options options{.delay = from_milliseconds(50)};
  PlainFleet fleet(options);
  fleet.book() = {};
  const Instant begin = fleet.now();
  fleet.start_member();
  PlainMember& joins = *fleet.members().back();
  std::vector<Row> rows;
  double before = 0;
  const auto reach = [&](std::string what, const std::string& between, const std::function<bool()>& holds) {
    fleet.run_until(holds);
    const double trips = (fleet.now() - begin).seconds() / (2 * options.delay.seconds());
    rows.push_back(
        {std::move(what), between, {fmt::format("{:.1f}", trips - before), fmt::format("{:.1f}", trips)}});
    before = trips;
  };
  const std::string pair = "node, coordinator";
  reach("Begin is answered: incarnation, coordinators, configuration", pair,
        [&] { return joins.member() != nullptr; });
  reach("the link to the coordinator is up; Here goes out", pair,
        [&] { return joins.linked_with(cluster::kCoordinatorNode); });
  reach("the whole view is here", pair, [&] { return joins.member()->view().epoch().value != 0; });
  reach("links to all members are up, opened all at once; Ready goes out", "node, members",
        [&] { return joins.linked_with_all(); });
  reach("Ready has arrived; Change goes out", pair,
        [&] { return fleet.book().to_coordinator.contains(ToCoordinator::kReady); });
  reach("all have said Frozen; Install goes out", "coordinator, all", [&] {
    return fleet.book().to_coordinator[ToCoordinator::kFrozen].messages == fleet.members().size();
  });
  reach("Install is there: it serves", "coordinator, all", [&] { return fleet.settled(); });
  print_rows("cost-join", {"what", "between", "round trips", "since the beginning"}, rows);
}

// Prints the time from a member's silence until it is fenced, and until the others go on. Silences begin at
// many moments between two beats; the least and the most time are printed.
void print_death() {
  std::vector<Row> rows;
  for (const bool killed : {true, false}) {
    for (const double delay_ms : {0.5, 10.0, 100.0}) {
      std::vector<double> fenced;
      std::vector<double> on;
      for (int i = 0; i < kSilences; ++i) {
        PlainFleet fleet({.delay = from_milliseconds(delay_ms), .seed = 1 + static_cast<std::uint64_t>(i)});
        fleet.run_for(from_milliseconds(3000 + i));
        const Incarnation life = fleet.members().back()->member()->self().incarnation;
        const Instant begin = fleet.now();
        if (!killed) fleet.switch_member_off();
        // Its process is gone either way; a machine without power resets no connection.
        fleet.kill_member();
        fleet.run_until([&] { return fleet.leader().fenced().contains(life); });
        fenced.push_back((fleet.now() - begin).seconds());
        fleet.run_until([&] { return fleet.settled(); });
        on.push_back((fleet.now() - begin).seconds());
      }
      const auto range = [](std::vector<double>& seconds) {
        std::ranges::sort(seconds);
        return fmt::format("{:.2f} to {:.2f} s", seconds.front(), seconds.back());
      };
      rows.push_back({killed ? "`kill -9`" : "power, network",
                      fmt::format("{:g} ms", 2 * delay_ms),
                      {range(fenced), range(on)}});
    }
  }
  print_rows("cost-death", {"cause", "round trip", "dead after", "the others go on after"}, rows);
}

}  // namespace

int main() {
  print_messages();
  print_join();
  print_death();
  return 0;
}
