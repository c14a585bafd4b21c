// SPDX-License-Identifier: Apache-2.0
#include "node/cluster/coordinator_doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "cluster/admission/token.h"
#include "host/grpc/authority_fetch.h"
#include "host/grpc/certificates.h"
#include "node/cluster/cluster_status.h"
#include "node/cluster/credentials.h"
#include "node/cluster/questions.h"

namespace gossamer::node {
namespace {

// Certificates begin when they are signed, and tokens live for hours.
constexpr double kClockAdvice = 5;
constexpr double kClockBad = 60;

Finding finding(std::string_view name, Health health, std::string found, std::string advice) {
  return {.name = name, .health = health, .found = std::move(found), .advice = std::move(advice)};
}

Finding bad(std::string_view name, const Error& error) {
  const std::string found = error.got.empty() ? error.what : error.what + ": " + error.got;
  return finding(name, Health::kBad, found, error.fix);
}

// The fingerprint of the run that the asker belongs to; none if it has neither token nor credentials.
Result<std::optional<std::string>> wanted_run(const NodeHost& host, const Asker& asker) {
  if (asker.token) {
    const auto token = cluster::decode_token(*asker.token);
    if (!token.ok()) return token.error();
    return std::optional(token->authority);
  }
  if (asker.directory.empty()) return std::optional<std::string>();
  const auto own = load_membership(host.disk, asker.directory, host.clock.wall_seconds());
  if (!own.ok()) return own.error();
  const auto fingerprint = host::fingerprint(own->credentials.authority);
  if (!fingerprint.ok()) return fingerprint.error();
  return std::optional(*fingerprint);
}

// name, port, tls and run, by how far fetch_authority() came. False when the rest cannot be seen.
bool look_at_server(const host::Endpoint& at, const std::optional<std::string>& wanted, Duration timeout,
                    std::vector<Finding>& findings) {
  const auto served = host::fetch_authority(at, wanted.value_or(""), timeout);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSteps{
      {{"name", "cannot find the name"},
       {"port", "cannot connect"},
       {"tls", "no TLS there"},
       {"run", "the server is of another run"}}};
  for (const auto& [name, failure] : kSteps) {
    const bool last = name == "run";
    if (last && !wanted) return false;
    if (!served.ok() && served.error().what == failure) {
      findings.push_back(bad(name, served.error()));
      return false;
    }
    findings.push_back(finding(name, Health::kGood, last ? "served there" : "", ""));
  }
  if (served.ok()) return true;
  findings.push_back(bad("tls", served.error()));
  return false;
}

Finding check_program(const std::string& theirs, const std::string& program) {
  if (theirs == program) return finding("version", Health::kGood, program + " on both sides", "");
  return finding("version", Health::kAdvice, fmt::format("{} here, {} there", program, theirs),
                 "install the same version on both sides");
}

Finding check_clock(double theirs, double before, double after) {
  // The answer was made at some moment in between.
  const double off = theirs < before ? theirs - before : std::max(theirs - after, 0.0);
  const Health health = std::abs(off) > kClockBad      ? Health::kBad
                        : std::abs(off) > kClockAdvice ? Health::kAdvice
                                                       : Health::kGood;
  if (health == Health::kGood)
    return finding("clocks", health, fmt::format("agree within {:.1f} s", kClockAdvice), "");
  return finding("clocks", health,
                 fmt::format("the coordinator's is {:.0f} s {}", std::abs(off), off > 0 ? "ahead" : "behind"),
                 "start a time service on both machines (chrony, systemd-timesyncd)");
}

}  // namespace

std::vector<Finding> examine_coordinator(const NodeHost& host, const host::Endpoint& at, const Asker& asker,
                                         const std::string& program) {
  const std::string_view proof = asker.token ? "token" : "credentials";
  std::vector<Finding> findings;
  const auto wanted = wanted_run(host, asker);
  if (!wanted.ok()) findings.push_back(bad(proof, wanted.error()));
  const std::optional<std::string> run = wanted.ok() ? *wanted : std::nullopt;
  if (!look_at_server(at, run, asker.timeout, findings)) {
    if (wanted.ok() && !run)
      findings.push_back(finding("token", Health::kAdvice, "none to try", "add --token T, or --dir DIR"));
    return findings;
  }
  const double before = host.clock.wall_seconds();
  const auto status = ask_status(host, at, asker);
  const double after = host.clock.wall_seconds();
  if (!status.ok()) {
    const bool refused = status.error().kind == ErrorKind::kRefused;
    findings.push_back(bad(refused ? proof : "coordinator", status.error()));
    return findings;
  }
  findings.push_back(finding(proof, Health::kGood, "accepted", ""));
  const auto facts = status_facts(*status);
  if (!facts.ok()) {
    findings.push_back(bad("version", facts.error()));
    return findings;
  }
  findings.push_back(check_program((*facts).program, program));
  findings.push_back(check_clock((*facts).time, before, after));
  return findings;
}

}  // namespace gossamer::node
