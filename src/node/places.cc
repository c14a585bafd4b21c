// SPDX-License-Identifier: Apache-2.0
#include "node/places.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "cluster/admission/token.h"
#include "host/api/files.h"
#include "json/read_json.h"
#include "node/admission/credentials.h"
#include "run/run_directory.h"

namespace gossamer::node {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kMaxFile = std::size_t{64} << 10;
constexpr std::size_t kNameDigits = 16;
constexpr int kMostNodes = 1000;  // nodes of one machine in one run

std::string address_path(const std::string& directory) { return directory + "/address.json"; }
std::string note_path(const std::string& state, std::uint16_t port) {
  return fmt::format("{}/coordinators/{}.json", state, port);
}

// JSON as a line. Paths and texts of peers need not be UTF-8.
std::string to_line(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Error unreadable(const std::string& path) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "cannot read the file",
          .expected = fmt::format("what src/node/places.h says, of version {}", kVersion),
          .fix = "remove it, and say HOST:PORT and --dir DIR instead"};
}

Result<ordered_json> read_object(host::Disk& disk, const std::string& path) {
  const auto text = host::read_text(disk, path, kMaxFile);
  if (!text.ok()) return text.error();
  ordered_json json = read_json<ordered_json>(*text);
  if (!json.is_object() || !json.contains("version") || json["version"] != kVersion) return unreadable(path);
  return json;
}

Result<std::optional<host::Endpoint>> endpoint_in(const ordered_json& json, const char* key,
                                                  const std::string& path) {
  if (!json.contains(key)) return std::optional<host::Endpoint>();
  if (!json[key].is_string()) return unreadable(path);
  const auto endpoint = host::parse_endpoint(json[key].get<std::string>());
  if (!endpoint.ok()) return unreadable(path);
  return std::optional(*endpoint);
}

// A run on this machine.
struct Noted {
  std::string directory;
  host::Endpoint at;
};

// The run that was served at that port last. A note that cannot be read, or that names a
// moved directory, counts as none.
std::optional<Noted> noted_coordinator(host::Disk& disk, const std::string& state, std::uint16_t port) {
  const auto json = read_object(disk, note_path(state, port));
  if (!json.ok() || !(*json).contains("directory") || !(*json).at("directory").is_string())
    return std::nullopt;
  const auto directory = (*json).at("directory").get<std::string>();
  const auto known = has_membership(disk, directory);
  const auto address = load_address(disk, directory);
  if (!known.ok() || !*known || !address.ok() || (*address).coordinator.port != port) return std::nullopt;
  return Noted{.directory = directory, .at = (*address).coordinator};
}

Result<std::vector<std::string>> node_directories(host::Disk& disk, const std::string& state,
                                                  const host::Endpoint& coordinator) {
  std::vector<std::string> directories;
  const std::string nodes = state + "/nodes";
  const auto there = disk.exists(nodes);
  if (!there.ok()) return there.error();
  if (!*there) return directories;
  const auto names = disk.list(nodes);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    std::string directory = nodes + "/" + name;
    const auto address = load_address(disk, directory);
    if (!address.ok()) continue;
    const std::vector<host::Endpoint>& others = address->others;
    const bool named = std::find(others.begin(), others.end(), coordinator) != others.end();
    if (address->coordinator != coordinator && !named) continue;
    const auto known = has_membership(disk, directory);
    if (known.ok() && *known) directories.push_back(std::move(directory));
  }
  return directories;
}

Error nothing_noted(const host::Endpoint& at, const char* token_help) {
  return {.kind = ErrorKind::kUsage,
          .where = host::to_string(at),
          .what = "this machine has no credentials for the run that is served there",
          .expected = "--token T, or --dir DIR with the credentials of an earlier life",
          .fix = token_help};
}

}  // namespace

bool is_wildcard(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; }

Result<host::Endpoint> bulk_endpoint(const host::Endpoint& control) {
  constexpr std::uint16_t kLastPort = 65535;
  host::Endpoint bulk = control;
  if (control.port == kLastPort) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--listen",
                 .what = "bulk needs the next port, and there is none",
                 .got = host::to_string(control),
                 .expected = fmt::format("a port up to {}, or 0", kLastPort - 1)};
  }
  if (bulk.port != 0) ++bulk.port;
  return bulk;
}

Result<void> keep_address(host::Disk& disk, const std::string& directory, const RunAddress& address) {
  ordered_json json = {{"version", kVersion}, {"coordinator", host::to_string(address.coordinator)}};
  if (address.control) json["control"] = host::to_string(*address.control);
  if (address.bulk) json["bulk"] = host::to_string(*address.bulk);
  for (const host::Endpoint& other : address.others) json["others"].push_back(host::to_string(other));
  if (address.led) json["led"] = true;
  if (address.shared) json["shared"] = true;
  return host::replace_file(disk, address_path(directory), to_line(json));
}

Result<RunAddress> load_address(host::Disk& disk, const std::string& directory) {
  const std::string path = address_path(directory);
  const auto json = read_object(disk, path);
  if (!json.ok()) return json.error();
  const auto coordinator = endpoint_in(*json, "coordinator", path);
  const auto control = endpoint_in(*json, "control", path);
  const auto bulk = endpoint_in(*json, "bulk", path);
  if (!coordinator.ok() || !control.ok() || !bulk.ok() || !*coordinator) return unreadable(path);
  RunAddress address{.coordinator = **coordinator,
                     .control = *control,
                     .bulk = *bulk,
                     .led = (*json).contains("led") && (*json)["led"] == true,
                     .shared = (*json).contains("shared") && (*json)["shared"] == true};
  if (!(*json).contains("others")) return address;
  for (const ordered_json& text : (*json)["others"]) {
    const auto other = text.is_string() ? host::parse_endpoint(text.get<std::string>()) : unreadable(path);
    if (!other.ok()) return unreadable(path);
    address.others.push_back(*other);
  }
  return address;
}

std::string lead_directory(const std::string& run) { return run::RunPaths(run).lead(); }

std::string coordinator_directory(host::Disk& disk, const std::string& directory) {
  const std::string inner = lead_directory(directory);
  const auto itself = disk.exists(address_path(directory));
  const auto there = disk.exists(address_path(inner));
  return (!itself.ok() || !*itself) && there.ok() && *there ? inner : directory;
}

Result<void> note_coordinator(host::Disk& disk, const std::string& state, std::uint16_t port,
                              const std::string& directory) {
  if (auto made = disk.make_directories(state + "/coordinators"); !made.ok()) return made;
  const ordered_json json = {{"version", kVersion}, {"directory", directory}};
  return host::replace_file(disk, note_path(state, port), to_line(json));
}

Result<OwnDirectory> take_directory(host::Disk& disk, const std::string& path) {
  if (auto made = disk.make_directories(path); !made.ok()) return made.error();
  // Files in the directory would be lost with its name.
  if (auto named = disk.sync_directory(host::parent(path)); !named.ok()) return named.error();
  auto lock = disk.lock(path);
  if (!lock.ok()) return lock.error();
  return OwnDirectory{.path = path, .lock = std::move(*lock)};
}

Result<OwnDirectory> take_node_directory(host::Disk& disk, const JoinPlace& place) {
  std::vector<std::string> candidates;
  if (place.token) {
    const auto token = cluster::decode_token(*place.token);
    if (!token.ok()) return token.error();
    const std::string base = place.state + "/nodes/" + token->authority.substr(0, kNameDigits);
    candidates.push_back(base);
    for (int number = 2; number <= kMostNodes; ++number)
      candidates.push_back(fmt::format("{}-{}", base, number));
  } else {
    auto known = node_directories(disk, place.state, place.coordinator);
    if (!known.ok()) return known.error();
    candidates = std::move(*known);
    if (candidates.empty())
      return nothing_noted(place.coordinator, "on the coordinator's machine: gossamer token create DIR");
  }
  Error last;
  for (const std::string& candidate : candidates) {
    auto taken = take_directory(disk, candidate);
    if (taken.ok() || taken.error().kind != ErrorKind::kRefused) return taken;
    last = taken.error();
  }
  last.kind = ErrorKind::kUsage;
  last.fix = "one more node on this machine needs a token, or a directory of its own: --dir DIR";
  return last;
}

Result<Target> find_target(host::Disk& disk, const AskPlace& place) {
  Asker asker{.token = place.token, .directory = place.directory};
  const std::string run = coordinator_directory(disk, place.target);
  const auto is_run = disk.exists(address_path(run));
  if (is_run.ok() && *is_run) {
    const auto address = load_address(disk, run);
    if (!address.ok()) return address.error();
    if (asker.directory.empty()) asker.directory = run;
    return Target{.at = address->coordinator, .asker = std::move(asker), .listens = address->control};
  }
  const auto at = host::parse_endpoint(place.target);
  if (!at.ok()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = place.target,
                 .what = "this is neither HOST:PORT nor the directory of a coordinator or node",
                 .expected = "HOST:PORT, or a directory with an address.json in it",
                 .fix = "give the address that 'gossamer coordinator' printed, or its --out directory"};
  }
  if (asker.token || !asker.directory.empty()) return Target{.at = *at, .asker = std::move(asker)};
  // The coordinator's own credentials may do more than a node's. A match by port alone comes last,
  // because any host may use that port.
  const std::optional<Noted> noted = noted_coordinator(disk, place.state, (*at).port);
  const auto nodes = node_directories(disk, place.state, *at);
  if (!nodes.ok()) return nodes.error();
  if (noted && (noted->at == *at || (*nodes).empty())) {
    asker.directory = noted->directory;
  } else if (!(*nodes).empty()) {
    asker.directory = (*nodes).front();
  } else {
    return nothing_noted(*at, "on the coordinator's machine give its run directory, or: token create DIR");
  }
  return Target{.at = *at, .asker = std::move(asker)};
}

}  // namespace gossamer::node
