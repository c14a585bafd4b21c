// SPDX-License-Identifier: Apache-2.0
#include "node/metrics_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "host/posix/process_use.h"
#include "node/cluster_status.h"

namespace gossamer::node {
namespace {

using cluster::Coordinator;
using prometheus::MetricType;

double flag(bool is) { return is ? 1 : 0; }

void add_owner(MetricsPage& page, const MetricsOwner& owner, const std::string& role,
               Incarnation incarnation) {
  page.gauge("gossamer_node_info", "Which node this is.", 1,
             {{"run", owner.run},
              {"node", fmt::format("{}", owner.node.value)},
              {"incarnation", fmt::format("{}", incarnation.value)},
              {"role", role},
              {"program", owner.program}});
  for (const auto& [kind, count] : *owner.events) {
    page.counter("gossamer_events_total", "Lines of events.jsonl.", static_cast<double>(count),
                 {{"event", kind}});
  }
  const host::ProcessUse use = host::process_use();
  page.counter("process_cpu_seconds_total", "User and system time.", use.cpu_seconds);
  page.gauge("process_resident_memory_bytes", "Resident memory.", static_cast<double>(use.resident_bytes));
  page.gauge("process_open_fds", "Open descriptors.", static_cast<double>(use.descriptors));
  page.gauge("process_start_time_seconds", "When it started, since 1970 UTC.", owner.started);
}

void add_epochs(MetricsPage& page, Epoch view, Epoch installed) {
  page.gauge("gossamer_epoch", "Epoch of the view that this node has.", static_cast<double>(view.value));
  page.gauge("gossamer_installed_epoch", "Epoch of the placement that this node has.",
             static_cast<double>(installed.value));
}

void add_link(MetricsPage& page, NodeId peer, const net::LinkStatistics& link) {
  const MetricsPage::Labels labels{{"peer", fmt::format("{}", peer.value)}};
  page.gauge("gossamer_link_up", "1: the control connection is up.", flag(link.up), labels);
  page.gauge("gossamer_link_bulk_up", "1: the bulk connection is up.", flag(link.lane(host::Lane::kBulk).up),
             labels);
  if (link.round_trip) {
    page.gauge("gossamer_link_round_trip_seconds", "Of the last ping.", link.round_trip->seconds(), labels);
  }
  page.gauge("gossamer_link_queued_bytes", "Sent and not acknowledged.",
             static_cast<double>(link.queued_bytes), labels);
  page.counter("gossamer_link_acknowledged_bytes_total", "Sent and acknowledged, in the life of the link.",
               static_cast<double>(link.acknowledged_bytes), labels);
  page.counter("gossamer_link_received_bytes_total", "Received, in the life of the link.",
               static_cast<double>(link.received_bytes), labels);
}

void add_run(MetricsPage& page, const Coordinator& coordinator) {
  page.gauge("gossamer_coordinator_generation", "Of its lead.",
             static_cast<double>(coordinator.generation().value));
  for (const Coordinator::Phase phase : kPhases) {
    page.gauge("gossamer_coordinator_phase", "1 for the phase that holds.",
               flag(phase == coordinator.phase()), {{"phase", phase_name(phase)}});
  }
  page.gauge("gossamer_coordinator_things", "Things that are placed.",
             static_cast<double>(coordinator.holdings().size()));
  if (coordinator.marks()) {
    page.gauge("gossamer_coordinator_committed_step", "All steps before it are applied everywhere.",
               static_cast<double>(coordinator.marks()->committed().value));
  }
}

void add_members(MetricsPage& page, const Coordinator& coordinator) {
  const std::vector<cluster::MemberFacts> members = coordinator.members();
  for (const membership::State state : {membership::JOINING, membership::SERVING, membership::DRAINING}) {
    const auto count = std::count_if(members.begin(), members.end(),
                                     [&](const auto& one) { return one.record->state() == state; });
    page.gauge("gossamer_coordinator_members", "Members in that state.", static_cast<double>(count),
               {{"state", state_name(state)}});
  }
  const std::map<NodeId, std::size_t> things = things_of(coordinator.holdings());
  for (const cluster::MemberFacts& member : members) {
    const NodeId node(member.record->node());
    const MetricsPage::Labels labels{{"node", fmt::format("{}", node.value)}};
    const auto held = things.find(node);
    page.gauge("gossamer_coordinator_member_things", "Things that the member holds.",
               held == things.end() ? 0 : static_cast<double>(held->second), labels);
    page.gauge("gossamer_coordinator_member_speed", "Work a second, smoothed; 0: not measured.",
               member.pace.speed, labels);
    page.gauge("gossamer_coordinator_member_own_work", "Work of a step whatever the member holds, smoothed.",
               member.pace.own_work, labels);
    add_link(page, node, member.link);
  }
}

}  // namespace

prometheus::ClientMetric& MetricsPage::add(MetricType type, const std::string& name, const std::string& help,
                                           Labels labels) {
  const auto same = [&](const prometheus::MetricFamily& family) { return family.name == name; };
  auto family = std::find_if(families_.begin(), families_.end(), same);
  if (family == families_.end())
    family = families_.insert(family, {.name = name, .help = help, .type = type, .metric = {}});
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  metric.label = std::move(labels);
  return metric;
}

void MetricsPage::gauge(const std::string& name, const std::string& help, double value, Labels labels) {
  add(MetricType::Gauge, name, help, std::move(labels)).gauge.value = value;
}

void MetricsPage::counter(const std::string& name, const std::string& help, double value, Labels labels) {
  add(MetricType::Counter, name, help, std::move(labels)).counter.value = value;
}

void MetricsPage::counters(std::span<const CounterSample> samples) {
  for (const CounterSample& one : samples)
    counter(std::string(one.name), std::string(one.help), static_cast<double>(one.value));
}

MetricsPage coordinator_metrics(const MetricsOwner& owner, cluster::CoordinatorProcess& process,
                                bool store_fails) {
  const Coordinator* const coordinator = process.coordinator();
  MetricsPage page;
  add_owner(page, owner, "coordinator", coordinator == nullptr ? Incarnation() : coordinator->incarnation());
  page.gauge("gossamer_coordinator_leads", "1: it leads the run.", flag(coordinator != nullptr));
  if (coordinator == nullptr) return page;
  add_epochs(page, coordinator->view().epoch(), coordinator->installed());
  page.gauge("gossamer_coordinator_store_failing", "1: the last call of the store failed.",
             flag(store_fails));
  add_run(page, *coordinator);
  add_members(page, *coordinator);
  return page;
}

MetricsPage member_metrics(const MetricsOwner& owner, cluster::MemberProcess& process,
                           std::span<const CounterSample> engine) {
  cluster::Member* const member = process.member();
  MetricsPage page;
  add_owner(page, owner, "member", member == nullptr ? Incarnation() : member->self().incarnation);
  page.counters(engine);
  if (member == nullptr) return page;
  add_epochs(page, member->view().epoch(), Epoch(member->installed().epoch()));
  const auto& holdings = member->installed().holdings();
  const auto held = std::count_if(holdings.begin(), holdings.end(),
                                  [&](const auto& one) { return one.node() == owner.node.value; });
  page.gauge("gossamer_member_things", "Things that this node holds.", static_cast<double>(held));
  add_link(page, cluster::kCoordinatorNode, process.links()->statistics(cluster::kCoordinatorNode));
  for (const auto& [node, record] : member->view().members()) {
    if (node != owner.node) add_link(page, node, process.links()->statistics(node));
  }
  return page;
}

}  // namespace gossamer::node
