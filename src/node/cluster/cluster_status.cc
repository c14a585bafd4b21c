// SPDX-License-Identifier: Apache-2.0
#include "node/cluster/cluster_status.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>
#include <utility>

namespace gossamer::node {
namespace {

using nlohmann::ordered_json;

const char* name_of(membership::State state) {
  switch (state) {
    case membership::SERVING: return "serving";
    case membership::DRAINING: return "draining";
    default: return "joining";
  }
}

const char* name_of(cluster::Coordinator::Phase phase) {
  switch (phase) {
    case cluster::Coordinator::Phase::kSettled: return "settled";
    case cluster::Coordinator::Phase::kFreezing: return "changing";
    case cluster::Coordinator::Phase::kShort: return "short";
    case cluster::Coordinator::Phase::kStopping: return "stopping";
  }
  return "";
}

ordered_json member_json(const cluster::MemberFacts& member, std::size_t things, Instant now) {
  const membership::MemberRecord& record = *member.record;
  ordered_json json = {{"node", record.node()},
                       {"incarnation", record.incarnation()},
                       {"name", printable(record.name())},
                       {"state", name_of(record.state())},
                       {"address", nullptr},
                       {"cores", record.cores()},
                       {"memory_bytes", record.memory_bytes()},
                       {"speed", member.speed},
                       {"things", things},
                       {"connected", member.link.up},
                       {"round_trip_ms", nullptr},
                       {"silent_ms", nullptr},
                       {"queued_bytes", member.link.queued_bytes},
                       {"received_bytes", member.link.received_bytes}};
  if (cluster::listens(record.listening()))
    json["address"] = host::to_string(cluster::address_of({}, record.listening()).control);
  if (member.link.round_trip) json["round_trip_ms"] = member.link.round_trip->milliseconds();
  if (member.link.last_heard) json["silent_ms"] = (now - *member.link.last_heard).milliseconds();
  return json;
}

}  // namespace

std::string printable(std::string text) {
  for (char& one : text) {
    if (one < ' ' || one > '~') one = '?';
  }
  return text;
}

std::string status_json(const cluster::Coordinator& coordinator, const StatusFacts& facts, Instant now) {
  std::map<NodeId, std::size_t> held;
  for (const auto& [thing, node] : coordinator.holdings()) ++held[node];
  ordered_json json = {{"run", facts.run},
                       {"program", facts.program},
                       {"time", facts.time},
                       {"generation", coordinator.generation().value},
                       {"phase", name_of(coordinator.phase())},
                       {"shortage", coordinator.shortage()},
                       {"epoch", coordinator.view().epoch().value},
                       {"installed_epoch", coordinator.installed().value},
                       {"step", nullptr},
                       {"things", coordinator.holdings().size()},
                       {"fenced", coordinator.fenced().runs().size()},
                       {"members", ordered_json::array()}};
  if (coordinator.marks()) json["step"] = coordinator.marks()->committed().value;
  for (const cluster::MemberFacts& member : coordinator.members())
    json["members"].push_back(member_json(member, held[NodeId(member.record->node())], now));
  return json.dump();
}

Result<std::string> status_text(const std::string& json) {
  const auto status = ordered_json::parse(json, nullptr, false);
  if (!status.is_object() || !status.contains("members")) {
    return Error{.kind = ErrorKind::kBadData,
                 .what = "cannot read the coordinator's answer",
                 .expected = "the object of docs/protocols/status.md",
                 .fix = "run the same version of gossamer on both sides"};
  }
  std::string text = fmt::format("run {}  {}  epoch {}", status.value("run", ""), status.value("phase", ""),
                                 status.value("epoch", 0));
  if (status["step"].is_number()) text += fmt::format("  step {}", status["step"].get<std::uint64_t>());
  text += '\n';
  const std::string shortage = status.value("shortage", "");
  if (!shortage.empty()) text += fmt::format("waits: {}\n", shortage);
  text += fmt::format("{:>5} {:<16} {:<9} {:>6} {:>9} {:>6} {:>8} {:>10} {}\n", "node", "name", "state",
                      "cores", "memory", "things", "RTT", "silent", "address");
  for (const auto& member : status["members"]) {
    const auto milliseconds = [&](const char* key) {
      return member[key].is_number() ? fmt::format("{:.1f} ms", member[key].get<double>()) : "-";
    };
    text +=
        fmt::format("{:>5} {:<16} {:<9} {:>6} {:>6.1f} GB {:>6} {:>8} {:>10} {}\n", member.value("node", 0),
                    member.value("name", ""), member.value("state", ""), member.value("cores", 0),
                    member.value("memory_bytes", 0.0) * 1e-9, member.value("things", 0),
                    milliseconds("round_trip_ms"), milliseconds("silent_ms"),
                    member["address"].is_string() ? member["address"].get<std::string>() : "(behind NAT)");
  }
  return text;
}

}  // namespace gossamer::node
