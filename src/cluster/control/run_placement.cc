// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/run_placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace gossamer::cluster {
namespace {

// 0 if there is none; of two in the middle the lower one.
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Nobody can check what a member says of its speed, and one that claims all would be given all. No speed
// counts for more than this multiple of the median; of two in the middle the lower one counts.
void cap(std::map<NodeId, Pace>& paces) {
  std::vector<double> speeds;
  for (const auto& [node, pace] : paces) speeds.push_back(pace.speed);
  const double most = kMostOfMedian * median(std::move(speeds));
  for (auto& [node, pace] : paces) pace.speed = std::min(pace.speed, most);
}

// The paces of members: measured, or else believed at the last placement. A member due for a trial has none.
std::map<NodeId, Pace> known_paces(const LedRun& run, Instant now) {
  std::map<NodeId, Pace> paces;
  for (const membership::Installed::Speed& one : run.installed.speeds())
    paces[NodeId(one.node())] = {.speed = one.speed(), .own_work = one.own_work()};
  for (const auto& [node, member] : run.members) {
    if (const auto measured = member.pace.pace()) paces[node] = *measured;
    if (member.trial.due(now)) paces.erase(node);
  }
  cap(paces);
  return paces;
}

}  // namespace

std::vector<placement::Thing> things_with_copies(const Workload& workload,
                                                 const std::map<NodeId, membership::Frozen>& reports) {
  std::vector<placement::Thing> things = workload.things();
  std::map<placement::ThingId, std::size_t> places;
  for (std::size_t i = 0; i < things.size(); ++i) places[things[i].id] = i;
  for (const auto& [node, report] : reports) {
    for (const std::uint64_t copy : report.copies()) {
      const auto place = places.find(placement::ThingId(copy));
      if (place != places.end()) things[place->second].copies.emplace_back(node.value);
    }
  }
  return things;
}

std::vector<placement::Member> placeable(const LedRun& run, Instant now) {
  const std::map<NodeId, Pace> paces = known_paces(run, now);
  double speed = 0;
  double cores = 0;
  double own_work = std::numeric_limits<double>::infinity();
  for (const auto& [node, pace] : paces) {
    const auto member = run.members.find(node);
    if (member == run.members.end()) continue;
    speed += pace.speed;
    cores += std::max<double>(member->second.record.cores(), 1);
    own_work = std::min(own_work, pace.own_work);
  }
  const Pace per_core = cores > 0 ? Pace{.speed = speed / cores, .own_work = own_work} : Pace{.speed = 1};
  std::vector<placement::Member> members;
  for (const auto& [node, record] : run.view.members()) {
    const auto known = paces.find(node);
    const double guess = per_core.speed * std::max<double>(record.cores(), 1);
    const bool goes = record.state() == membership::DRAINING || run.departures.contains(node);
    members.push_back({.id = placement::MemberId(node.value),
                       .limit_bytes = record.memory_bytes(),
                       .speed = known == paces.end() ? guess : known->second.speed,
                       .service = goes ? placement::Service::kDraining : placement::Service::kServing,
                       .own_work = known == paces.end() ? per_core.own_work : known->second.own_work});
  }
  return members;
}

placement::Placement current_placement(const LedRun& run) {
  placement::Placement current;
  for (const auto& [thing, node] : run.holdings)
    current.holdings.push_back({thing, placement::MemberId(node.value)});
  for (const membership::Installed::Speed& one : run.installed.speeds())
    current.speeds.push_back({placement::MemberId(one.node()), one.speed(), one.own_work()});
  return current;
}

Result<placement::Decision> placed_anew(const Workload& workload, const LedRun& run,
                                        placement::Options options, Instant now) {
  options.step_s = step_seconds(run, now);
  return placement::place(workload.things(), placeable(run, now), current_placement(run), options);
}

void see_idle_members(LedRun& run, Instant now) {
  std::set<NodeId> holders;
  for (const auto& [thing, node] : run.holdings) holders.insert(node);
  for (auto& [node, member] : run.members) {
    const bool holds = holders.contains(node);
    if (holds && member.trial.due(now)) member.pace = {};  // its earlier measurements speak against it
    member.trial.placed(holds, now);
  }
}

double step_seconds(const LedRun& run, Instant now) {
  std::vector<double> told;
  for (const auto& [node, pace] : known_paces(run, now)) {
    if (pace.step_s > 0) told.push_back(pace.step_s);
  }
  return median(std::move(told));
}

double agreed_step_seconds(const LedRun& run) {
  std::vector<double> told;
  for (const auto& [node, record] : run.view.members()) {
    const auto member = run.members.find(node);
    const auto pace = member == run.members.end() ? std::nullopt : member->second.pace.pace();
    told.push_back(pace ? pace->step_s : 0);
  }
  return median(std::move(told));
}

std::string changes_of(const HoldingMap& holdings, const placement::Placement& placed) {
  std::map<NodeId, std::size_t> before;
  for (const auto& [thing, node] : holdings) ++before[node];
  std::map<NodeId, std::size_t> after;
  for (const placement::Holding& one : placed.holdings) ++after[NodeId(one.member.value)];
  std::vector<std::string> changes;
  for (const placement::BelievedSpeed& one : placed.speeds) {
    const NodeId node(one.member.value);
    const auto held = before.find(node);
    const std::size_t had = held == before.end() ? 0 : held->second;
    if (had == after[node]) continue;
    changes.push_back(fmt::format("node {} {} -> {} things ({:.3g} a second, own work {:.3g})", node.value,
                                  had, after[node], one.speed, one.own_work));
  }
  const std::size_t told = std::min<std::size_t>(changes.size(), 16);
  return fmt::format("{}{}",
                     fmt::join(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(told), ", "),
                     told < changes.size() ? ", ..." : "");
}

bool holders_rest(const LedRun& run, const std::map<NodeId, membership::Frozen>& reports) {
  return !run.holdings.empty() && std::ranges::all_of(run.holdings, [&](const auto& one) {
    const auto report = reports.find(one.second);
    return report != reports.end() && report->second.installed() != 0;
  });
}

bool hung_up(const LedRun& run, const std::set<NodeId>& nodes) {
  return std::ranges::all_of(nodes, [&run](NodeId node) { return run.members.at(node).hung_up; });
}

bool a_holder_has_left(const LedRun& run) {
  return std::ranges::any_of(run.holdings,
                             [&run](const auto& one) { return !run.members.contains(one.second); });
}

bool only_the_drained_left(const LedRun& run) {
  const auto holds = [&run](NodeId node) {
    return std::ranges::any_of(run.holdings, [node](const auto& one) { return one.second == node; });
  };
  const auto was_done = [&](const auto& one) {
    return run.members.contains(one.first) ||
           (one.second.state() == membership::DRAINING && !holds(one.first));
  };
  return run.installed.epoch() == run.view.epoch().value && !all_drain(run) &&
         std::ranges::all_of(run.view.members(), was_done);
}

bool any_is(const LedRun& run, membership::State state) {
  return std::ranges::any_of(run.members,
                             [state](const auto& one) { return one.second.record.state() == state; });
}

bool any_waits_to_serve(const LedRun& run, const std::function<bool(NodeId)>& hears) {
  return std::ranges::any_of(run.members, [&](const auto& one) {
    return one.second.wants_to_serve && one.second.record.state() == membership::JOINING && hears(one.first);
  });
}

bool all_drain(const LedRun& run) {
  return run.installed.epoch() != 0 && !run.view.members().empty() &&
         std::ranges::all_of(run.view.members(),
                             [](const auto& one) { return one.second.state() == membership::DRAINING; });
}

std::vector<placement::Member> members_to_place(const LedRun& run, Instant now) {
  std::vector<placement::Member> members = placeable(run, now);
  if (!all_drain(run)) return members;
  const auto holds = [&run](const placement::Member& member) {
    return std::ranges::any_of(run.holdings,
                               [&](const auto& one) { return one.second.value == member.id.value; });
  };
  const bool any = std::ranges::any_of(members, holds);
  for (placement::Member& member : members) {
    if (!any || holds(member)) member.service = placement::Service::kServing;
  }
  return members;
}

HoldingMap holdings_of(const placement::Placement& placed) {
  HoldingMap holdings;
  for (const placement::Holding& one : placed.holdings) holdings[one.thing] = NodeId(one.member.value);
  return holdings;
}

namespace {

std::vector<KeptParts> kept_by(const membership::Frozen& said) {
  std::vector<KeptParts> kept;
  for (const membership::Kept& one : said.kept()) {
    kept.push_back({.lineage = one.lineage(),
                    .step = StepNumber(one.step()),
                    .parts = {one.parts().begin(), one.parts().end()}});
  }
  return kept;
}

std::optional<WholeCheckpoint> checkpoint_in(const membership::Installed& installed) {
  if (!installed.has_checkpoint()) return std::nullopt;
  WholeCheckpoint known{.lineage = installed.checkpoint().lineage(),
                        .step = StepNumber(installed.checkpoint().step())};
  for (const membership::Checkpoint::Holder& holder : installed.checkpoint().holders())
    known.has[NodeId(holder.node())] = {holder.parts().begin(), holder.parts().end()};
  return known;
}

void put_checkpoint(const WholeCheckpoint& whole, membership::Checkpoint& checkpoint) {
  checkpoint.set_lineage(whole.lineage);
  checkpoint.set_step(whole.step.value);
  for (const auto& [node, parts] : whole.has) {
    membership::Checkpoint::Holder& holder = *checkpoint.add_holders();
    holder.set_node(node.value);
    holder.mutable_parts()->Add(parts.begin(), parts.end());
  }
}

std::optional<WholeCheckpoint> checkpoint_at(const AtRest& rest) {
  const std::uint64_t parts = rest.workload.checkpoint_parts();
  if (parts == 0) return std::nullopt;
  std::map<NodeId, std::vector<KeptParts>> kept;
  for (const auto& [node, report] : rest.reports) kept[node] = kept_by(report);
  const membership::Installed& last = rest.run.installed;
  return newest_whole(checkpoint_in(last), kept, last.lineage(), parts);
}

Decision any_decision(const AtRest& rest, const placement::Placement& placed) {
  std::map<NodeId, Pace> paces;
  for (const placement::BelievedSpeed& one : placed.speeds)
    paces[NodeId(one.member.value)] = {.speed = one.speed, .own_work = one.own_work};
  return rest.workload.decide({.view = rest.run.view,
                               .reports = rest.reports,
                               .before = rest.run.holdings,
                               .after = holdings_of(placed),
                               .committed = rest.committed,
                               .last = rest.run.installed.decision(),
                               .paces = std::move(paces),
                               .checkpoint = checkpoint_at(rest),
                               .lineage = rest.run.installed.lineage()});
}

}  // namespace

Decision decide(const AtRest& rest, const placement::Placement& placed) {
  Decision decision = any_decision(rest, placed);
  if (decision.bytes.size() <= kMaxDecisionBytes) return decision;
  return {.committed = decision.committed,
          .failure = Error{.what = "the run has too many parts",
                           .got = fmt::format("a decision of {} bytes", decision.bytes.size()),
                           .expected = fmt::format("at most {}", kMaxDecisionBytes),
                           .fix = "resume it with fewer members"}};
}

bool loses_a_part(const AtRest& rest, const placement::Placement& placed) {
  return decide(rest, placed).lost;
}

std::optional<NodeId> says_too_much(const AtRest& rest, const placement::Placement& placed) {
  if (any_decision(rest, placed).bytes.size() <= kMaxDecisionBytes) return std::nullopt;
  std::vector<std::pair<std::size_t, NodeId>> sizes;
  for (const auto& [node, report] : rest.reports) sizes.emplace_back(report.report().size(), node);
  std::ranges::sort(sizes);
  if (sizes.empty() || sizes.back().first <= 2 * sizes[(sizes.size() - 1) / 2].first) return std::nullopt;
  return sizes.back().second;
}

bool can_be_said(const membership::Frozen& said, const LedRun& run, const Workload& workload) {
  return said.installed() <= run.installed.epoch() &&
         static_cast<std::size_t>(said.copies_size()) <= workload.things().size() &&
         can_be_kept(kept_by(said), workload.checkpoint_parts());
}

membership::Installed installed_as(const AtRest& rest, const Decision& decision,
                                   const placement::Placement& placed) {
  membership::Installed installed;
  installed.set_epoch(rest.run.view.epoch().value);
  installed.set_lineage(decision.lineage);
  if (const auto whole = checkpoint_at(rest)) put_checkpoint(*whole, *installed.mutable_checkpoint());
  installed.set_decision(decision.bytes);
  for (const placement::BelievedSpeed& one : placed.speeds) {
    membership::Installed::Speed& speed = *installed.add_speeds();
    speed.set_node(one.member.value);
    speed.set_speed(one.speed);
    speed.set_own_work(one.own_work);
  }
  return installed;
}

membership::Install install_message(const LedRun& run) {
  membership::Install install;
  install.set_epoch(run.installed.epoch());
  install.set_decision(run.installed.decision());
  for (const auto& [thing, node] : run.holdings) {
    membership::Holding& holding = *install.add_holdings();
    holding.set_thing(thing.value);
    holding.set_node(node.value);
  }
  return install;
}

Result<placement::Decision> placed_at_rest(const AtRest& rest, std::vector<placement::Member> members,
                                           const placement::Options& options) {
  const auto things = things_with_copies(rest.workload, rest.reports);
  auto placed = placement::place(things, members, current_placement(rest.run), options);
  if (placed.ok()) return placed;
  for (placement::Member& member : members) {
    if (rest.run.departures.contains(NodeId(member.id.value))) member.service = placement::Service::kServing;
  }
  return placement::place(things, members, current_placement(rest.run), options);
}

bool go_on_without(const std::set<NodeId>& nodes, const AtRest& rest, const placement::Options& options,
                   Instant now) {
  std::vector<placement::Member> members = members_to_place(rest.run, now);
  std::erase_if(members, [&](const placement::Member& member) {
    const NodeId node(member.id.value);
    return nodes.contains(node) || !rest.reports.contains(node);
  });
  const auto placed = placed_at_rest(rest, std::move(members), options);
  return placed.ok() && !decide(rest, placed->placement).failure;
}

bool have_all(const AtRest& rest, Instant now) {
  std::vector<placement::Member> members = placeable(rest.run, now);
  std::erase_if(members, [&](const placement::Member& member) {
    return !rest.reports.contains(NodeId(member.id.value));
  });
  for (placement::Member& member : members) {
    member.limit_bytes = std::numeric_limits<std::uint64_t>::max();
    member.service = placement::Service::kServing;
  }
  const auto placed = placement::place(things_with_copies(rest.workload, rest.reports), members,
                                       current_placement(rest.run), {});
  return placed.ok() && !loses_a_part(rest, placed->placement);
}

Fencing due_at_rest(const AtRest& rest, Instant now) {
  const std::set<NodeId> odd = rest.workload.contradicting_by(rest.run.installed.decision(), rest.reports);
  if (!odd.empty()) return {.nodes = {odd.begin(), odd.end()}, .why = kContradicts};
  Fencing due{.nodes = {}, .why = Departures::kWhy};
  std::map<NodeId, membership::Frozen> others = rest.reports;
  std::erase_if(others, [&](const auto& one) { return !rest.run.hears(one.first, now); });
  const auto go = [&](NodeId node) {
    others.erase(node);
    due.nodes.push_back(node);
  };
  const auto can_go = [&](NodeId node) {
    auto left = others;
    return left.erase(node) != 0 && have_all({rest.workload, rest.run, left, rest.committed}, now);
  };
  const Departures& departures = rest.run.departures;
  for (const NodeId node : departures.nodes()) {
    if (!others.contains(node)) continue;
    const auto in_its_place = departures.in_its_place(node);
    const bool alone = can_go(node);
    if (!alone && in_its_place && !others.contains(*in_its_place)) continue;  // it goes already
    if (!alone && in_its_place && can_go(*in_its_place)) {
      go(*in_its_place);
    } else if (alone || (others.size() > 1 && departures.is_over(node))) {
      go(node);
    }
  }
  return due;
}

std::string departing(const LedRun& run) {
  std::vector<std::uint64_t> nodes;
  for (const NodeId node : run.departures.nodes()) nodes.push_back(node.value);
  if (nodes.empty()) return {};
  return fmt::format(
      "node {} has to go, as it and others cannot reach each other; it hands over first what it holds",
      fmt::join(nodes, ", "));
}

std::set<NodeId> without_report(const View& view, const std::map<NodeId, membership::Frozen>& reports) {
  std::set<NodeId> nodes;
  for (const auto& [node, record] : view.members()) {
    if (!reports.contains(node)) nodes.insert(node);
  }
  return nodes;
}

}  // namespace gossamer::cluster
