// SPDX-License-Identifier: Apache-2.0
#include "node/cluster_status.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/human_bytes.h"
#include "base/printable.h"
#include "json/read_json.h"
#include "run/progress.h"

namespace gossamer::node {
namespace {

using nlohmann::ordered_json;

// Limits that let the answer fit into one message, however many members there are.
constexpr std::size_t kMostMembers = 1000;
constexpr std::size_t kMostRuns = 16;

// Runs of consecutive things that a node holds: [first, last].
using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
struct Held {
  std::size_t things = 0;
  Runs runs;
};

std::map<NodeId, Held> held_by(const cluster::HoldingMap& holdings) {
  std::map<NodeId, Held> held;
  for (const auto& [thing, node] : holdings) {
    auto& [things, runs] = held[node];
    ++things;
    if (!runs.empty() && runs.back().second + 1 == thing.value) {
      ++runs.back().second;
    } else {
      runs.emplace_back(thing.value, thing.value);
    }
  }
  return held;
}

ordered_json member_json(const cluster::MemberFacts& member, const Held& held, Instant now) {
  const membership::MemberRecord& record = *member.record;
  ordered_json json = {{"node", record.node()},
                       {"incarnation", record.incarnation()},
                       {"name", printable(record.name())},
                       {"state", state_name(record.state())},
                       {"address", nullptr},
                       {"cores", record.cores()},
                       {"memory_bytes", record.memory_bytes()},
                       {"speed", member.pace.speed},
                       {"own_work", member.pace.own_work},
                       {"things", held.things},
                       {"held", nullptr},
                       {"connected", member.link.up},
                       {"bulk_connected", member.link.lane(host::Lane::kBulk).up},
                       {"round_trip_ms", nullptr},
                       {"silent_ms", nullptr},
                       {"queued_bytes", member.link.queued_bytes},
                       {"received_bytes", member.link.received_bytes},
                       {"relayed_to", ordered_json::array()},
                       {"step_bytes", nullptr},
                       {"background_bytes", nullptr},
                       {"token", nullptr}};
  if (member.steps) {
    json["step_bytes"] = member.steps->step_bytes();
    json["background_bytes"] = member.steps->background_bytes();
  }
  if (cluster::listens(record.listening()))
    json["address"] = printable(host::to_string(cluster::address_of({}, record.listening()).control));
  if (held.runs.size() <= kMostRuns) json["held"] = held.runs;
  if (member.link.round_trip) json["round_trip_ms"] = member.link.round_trip->milliseconds();
  if (member.link.last_heard) json["silent_ms"] = (now - *member.link.last_heard).milliseconds();
  for (const NodeId other : member.relayed_to) json["relayed_to"].push_back(other.value);
  return json;
}

// The numbers of expelled nodes, as many as fit into a status.
ordered_json expelled_json(const cluster::AdmittedNodes& nodes) {
  ordered_json json = ordered_json::array();
  for (const NodeId node : nodes.expelled()) {
    if (json.size() < kMostMembers) json.push_back(node.value);
  }
  return json;
}

// Adds the run's loss and the bytes that nodes send, as members tell them. The loss is the sum of the
// members' losses, and unknown while one is missing.
void add_steps(ordered_json& json, const std::vector<cluster::MemberFacts>& members,
               const std::map<NodeId, Held>& held) {
  double loss = 0;
  double step_bytes = 0;
  double background_bytes = 0;
  double count = 0;
  for (const cluster::MemberFacts& member : members) {
    if (!member.steps && held.contains(NodeId(member.record->node()))) return;
    if (!member.steps) continue;
    loss += member.steps->loss();
    step_bytes += member.steps->step_bytes();
    background_bytes += member.steps->background_bytes();
    ++count;
  }
  if (count == 0) return;
  json["loss"] = loss;
  json["bytes_sent_per_node_per_step"] = step_bytes / count;
  json["background_bytes_per_node_per_step"] = background_bytes / count;
}

// Adds the run's last step, and how long it is until then at the speed of the last seconds. A run that stands
// still has no such time.
void add_end(ordered_json& json, const StatusFacts& facts) {
  if (!facts.steps) return;
  json["steps"] = facts.steps->value;
  if (!json["step"].is_number() || !facts.steps_per_second) return;
  const auto done = json["step"].get<std::uint64_t>();
  const std::uint64_t left = facts.steps->value - std::min(done, facts.steps->value);
  if (left == 0) {
    json["seconds_left"] = 0;
  } else if (*facts.steps_per_second > 0) {
    json["seconds_left"] = static_cast<double>(left) / *facts.steps_per_second;
  }
}

// Reads a text of an answer. Another version may lack the field, or have others.
std::string text_in(const ordered_json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? printable(found->get<std::string>(), kAllBytes) : "";
}
double number_in(const ordered_json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}
std::string milliseconds_in(const ordered_json& json, const char* key) {
  const auto found = json.find(key);
  const bool known = found != json.end() && found->is_number();
  return known ? fmt::format("{:.1f} ms", found->get<double>()) : "-";
}

// The address at which others reach a member, and the members that it reaches through the coordinator alone.
std::string way_to(const ordered_json& member) {
  const std::string address = text_in(member, "address");
  std::string way = address.empty() ? "(behind NAT)" : address;
  const auto relayed = member.find("relayed_to");
  if (relayed == member.end() || !relayed->is_array()) return way;
  std::string nodes;
  for (const auto& node : *relayed) {
    if (node.is_number()) nodes += fmt::format("{}{}", nodes.empty() ? "" : ", ", node.get<double>());
  }
  return nodes.empty() ? way : fmt::format("{}, relayed to {}", way, nodes);
}

Error unreadable_status() {
  return {.kind = ErrorKind::kBadData,
          .what = "cannot read the coordinator's answer",
          .expected = "the object of docs/protocols/status.md",
          .fix = "run the same version of gossamer on both sides"};
}

// Formats bytes. Numbers of other machines may be anything.
std::string bytes_in(const ordered_json& json, const char* key) {
  return human_bytes(static_cast<std::uint64_t>(std::clamp(number_in(json, key), 0.0, 1e18)));
}

// The run's phase, epoch, step, loss, speed and bytes. Fields that are null are left out.
std::string progress_line(const ordered_json& status) {
  const auto known = [&status](const char* key) {
    const auto found = status.find(key);
    return found != status.end() && found->is_number();
  };
  std::string text = fmt::format("run {}  {}  epoch {}", text_in(status, "run"), text_in(status, "phase"),
                                 number_in(status, "epoch"));
  if (known("step")) text += fmt::format("  step {}", number_in(status, "step"));
  if (known("steps")) text += fmt::format(" of {}", number_in(status, "steps"));
  if (known("loss")) text += fmt::format("  loss {:.3f}", number_in(status, "loss"));
  if (known("steps_per_second"))
    text += fmt::format("  {:.1f} steps/s", number_in(status, "steps_per_second"));
  if (known("seconds_left"))
    text += fmt::format("  {} left",
                        run::human_duration(std::clamp(number_in(status, "seconds_left"), 0.0, 1e9)));
  if (known("bytes_sent_per_node_per_step")) {
    text += fmt::format("\neach node sends {} for a step, and {} beside it",
                        bytes_in(status, "bytes_sent_per_node_per_step"),
                        bytes_in(status, "background_bytes_per_node_per_step"));
  }
  return text + '\n';
}

// The expelled nodes, if there are any.
std::string expelled_line(const ordered_json& status) {
  const auto found = status.find("expelled");
  if (found == status.end() || !found->is_array() || found->empty()) return "";
  std::string nodes;
  for (const auto& node : *found) {
    if (node.is_number()) nodes += fmt::format("{}{}", nodes.empty() ? "" : ", ", node.get<double>());
  }
  return fmt::format("expelled: node{} {}\n", found->size() == 1 ? "" : "s", nodes);
}

Result<ordered_json> read_status(const std::string& json) {
  auto status = read_json<ordered_json>(json);
  if (status.is_object() && status.contains("members") && status["members"].is_array()) return status;
  return unreadable_status();
}

// How many nodes each token has let in, of at most as many tokens as members.
ordered_json let_in_json(const cluster::AdmittedNodes& admitted) {
  ordered_json json = ordered_json::object();
  for (const auto& [token, nodes] : admitted.let_in_by_each()) {
    if (json.size() == kMostMembers) break;
    json[printable(token)] = nodes;
  }
  return json;
}

}  // namespace

const char* state_name(membership::State state) {
  switch (state) {
    case membership::SERVING: return "serving";
    case membership::DRAINING: return "draining";
    default: return "joining";
  }
}

std::map<NodeId, std::size_t> things_of(const cluster::HoldingMap& holdings) {
  std::map<NodeId, std::size_t> held;
  for (const auto& [thing, node] : holdings) ++held[node];
  return held;
}

std::map<std::string, std::uint64_t> let_in_by_tokens(const std::string& status) {
  std::map<std::string, std::uint64_t> nodes;
  const auto read = read_status(status);
  if (!read.ok() || !read->contains("let_in") || !(*read)["let_in"].is_object()) return nodes;
  for (const auto& [token, count] : (*read)["let_in"].items()) {
    if (count.is_number_unsigned()) nodes[token] = count.get<std::uint64_t>();
  }
  return nodes;
}

std::string status_json(const cluster::Coordinator& coordinator, const StatusFacts& facts, Instant now) {
  const std::vector<cluster::MemberFacts> members = coordinator.members();
  std::map<NodeId, Held> held = held_by(coordinator.holdings());
  ordered_json json = {{"run", facts.run},
                       {"program", facts.program},
                       {"time", facts.time},
                       {"generation", coordinator.generation().value},
                       {"phase", phase_name(coordinator.phase())},
                       {"shortage", coordinator.shortage(now)},
                       {"alarms", ordered_json::array()},
                       {"epoch", coordinator.view().epoch().value},
                       {"installed_epoch", coordinator.installed().value},
                       {"step", nullptr},
                       {"steps", nullptr},
                       {"steps_per_second", nullptr},
                       {"seconds_left", nullptr},
                       {"loss", nullptr},
                       {"bytes_sent_per_node_per_step", nullptr},
                       {"background_bytes_per_node_per_step", nullptr},
                       {"things", coordinator.holdings().size()},
                       {"fenced", coordinator.fenced().runs().size()},
                       {"expelled", expelled_json(coordinator.admitted())},
                       {"let_in", let_in_json(coordinator.admitted())},
                       {"members_left_out", members.size() - std::min(members.size(), kMostMembers)},
                       {"members", ordered_json::array()}};
  if (coordinator.marks()) json["step"] = coordinator.marks()->committed().value;
  add_end(json, facts);
  for (const std::string& alarm : facts.alarms) json["alarms"].push_back(printable(alarm, kAllBytes));
  add_steps(json, members, held);
  if (facts.steps_per_second) json["steps_per_second"] = *facts.steps_per_second;
  for (const cluster::MemberFacts& member :
       std::span(members).first(std::min(members.size(), kMostMembers))) {
    const NodeId node(member.record->node());
    ordered_json one = member_json(member, held[node], now);
    if (const std::string token = coordinator.admitted().token_of(node); !token.empty()) one["token"] = token;
    json["members"].push_back(std::move(one));
  }
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<StatusFacts> status_facts(const std::string& json) {
  const auto status = read_status(json);
  if (!status.ok()) return status.error();
  return StatusFacts{.run = text_in(*status, "run"),
                     .program = text_in(*status, "program"),
                     .time = number_in(*status, "time"),
                     .alarms = {}};
}

Result<std::string> status_text(const std::string& json) {
  const auto status = read_status(json);
  if (!status.ok()) return status.error();
  std::string text = progress_line(*status);
  const std::string shortage = text_in(*status, "shortage");
  if (!shortage.empty()) text += fmt::format("waits: {}\n", shortage);
  if ((*status).contains("alarms") && (*status)["alarms"].is_array()) {
    for (const auto& alarm : (*status)["alarms"]) {
      if (alarm.is_string())
        text += fmt::format("ALARM: {}\n", printable(alarm.get<std::string>(), kAllBytes));
    }
  }
  text += expelled_line(*status);
  text += fmt::format("{:>5} {:<16} {:<9} {:>6} {:>9} {:>6} {:>8} {:>10} {}\n", "node", "name", "state",
                      "cores", "memory", "things", "RTT", "silent", "address");
  for (const auto& member : (*status)["members"]) {
    if (!member.is_object()) return unreadable_status();
    text += fmt::format("{:>5} {:<16} {:<9} {:>6} {:>6.1f} GB {:>6} {:>8} {:>10} {}\n",
                        number_in(member, "node"), text_in(member, "name"), text_in(member, "state"),
                        number_in(member, "cores"), number_in(member, "memory_bytes") * 1e-9,
                        number_in(member, "things"), milliseconds_in(member, "round_trip_ms"),
                        milliseconds_in(member, "silent_ms"), way_to(member));
  }
  if (const double more = number_in(*status, "members_left_out"); more > 0)
    text += fmt::format("and {} more\n", more);
  return text;
}

}  // namespace gossamer::node
