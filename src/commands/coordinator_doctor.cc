// SPDX-License-Identifier: Apache-2.0
#include "commands/coordinator_doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "cluster/admission/token.h"
#include "cluster/admission/token_book.h"
#include "host/grpc/authority_fetch.h"
#include "host/grpc/certificates.h"
#include "node/admission/credentials.h"
#include "node/cluster_status.h"
#include "node/questions.h"

namespace gossamer::commands {
namespace {

// Seconds by which clocks may differ. Certificates begin a day before they are signed, tokens live for hours,
// and people read the logs of several machines side by side.
constexpr double kClockAdvice = 5;
constexpr double kClockBad = 60;

Finding finding(std::string_view name, Health health, std::string found, std::string advice) {
  return {.name = name, .health = health, .found = std::move(found), .advice = std::move(advice)};
}

Finding bad(std::string_view name, const Error& error) {
  const std::string found = error.got.empty() ? error.what : error.what + ": " + error.got;
  return finding(name, Health::kBad, found, error.fix);
}

// The fingerprint of the run that the asker belongs to; none if the asker has neither token nor credentials.
Result<std::optional<std::string>> wanted_run(const run::NodeHost& host, const node::Asker& asker) {
  if (asker.token) {
    const auto token = cluster::decode_token(*asker.token);
    if (!token.ok()) return token.error();
    return std::optional(token->authority);
  }
  if (asker.directory.empty()) return std::optional<std::string>();
  const auto own = node::load_membership(host.disk, asker.directory, host.clock.wall_seconds());
  if (!own.ok()) return own.error();
  const auto fingerprint = host::fingerprint(own->credentials.authority);
  if (!fingerprint.ok()) return fingerprint.error();
  return std::optional(*fingerprint);
}

// Looks at name, port and tls, by how far a stranger comes. Nothing when the rest cannot be seen.
std::optional<host::ServedCertificates> look_at_server(const host::Endpoint& at, Duration timeout,
                                                       std::vector<Finding>& findings) {
  constexpr std::array<std::pair<std::string_view, host::ContactStep>, 3> kSteps{
      {{"name", host::ContactStep::kName},
       {"port", host::ContactStep::kPort},
       {"tls", host::ContactStep::kTls}}};
  const auto contact = host::fetch_certificates(at, timeout);
  const auto* const failure = std::get_if<host::ContactFailure>(&contact);
  for (const auto& [name, step] : kSteps) {
    if (failure != nullptr && failure->step == step) {
      findings.push_back(bad(name, failure->error));
      return std::nullopt;
    }
    findings.push_back(finding(name, Health::kGood, "", ""));
  }
  return std::get<host::ServedCertificates>(contact);
}

Finding check_program(const std::string& theirs, const std::string& program) {
  if (theirs == program) return finding("version", Health::kGood, program + " on both sides", "");
  return finding("version", Health::kAdvice, fmt::format("{} here, {} there", program, theirs),
                 "install the same version on both sides");
}

// This machine's clock and the coordinator's, and the certificates that are served.
struct Clocks {
  double here = 0;              // seconds since 1970-01-01 UTC, as all times here
  std::optional<double> ahead;  // of the other clock, at least; nothing: it was not told
  std::string why_not;
  const host::ServedCertificate* outside = nullptr;  // a certificate that does not hold by the clock here
};

Clocks look_at_clocks(const run::NodeHost& host, const host::Endpoint& at,
                      const host::ServedCertificates& served, Duration timeout) {
  Clocks clocks;
  const double before = host.clock.wall_seconds();
  const auto there = node::ask_clock(at, served.back().pem, timeout);
  clocks.here = host.clock.wall_seconds();
  // The answer was made at some moment between the question and its arrival.
  if (there.ok())
    clocks.ahead = *there < before ? *there - before : std::max(*there - clocks.here, 0.0);
  else
    clocks.why_not = there.error().what;
  for (const host::ServedCertificate& one : served) {
    if (clocks.here < one.valid_from || clocks.here > one.valid_until) clocks.outside = &one;
  }
  return clocks;
}

std::string length_text(double seconds) {
  constexpr double kHour = 3600;
  constexpr double kDay = 24 * kHour;
  if (seconds >= 2 * kDay) return fmt::format("{:.0f} days", seconds / kDay);
  if (seconds >= 2 * kHour) return fmt::format("{:.1f} hours", seconds / kHour);
  return fmt::format("{:.0f} s", seconds);
}

std::string time_text(double seconds) { return cluster::utc_text(static_cast<std::int64_t>(seconds)); }

// False where TLS fails, because a certificate does not hold by this machine's clock.
bool check_clocks(const Clocks& clocks, std::vector<Finding>& findings) {
  constexpr const char* kSet =
      "set the clock that is wrong, and start a time service on both machines (chrony, systemd-timesyncd)";
  const std::string here = time_text(clocks.here);
  std::string held;
  if (clocks.outside != nullptr) {
    held = fmt::format("; the coordinator's certificate holds from {} to {}",
                       time_text(clocks.outside->valid_from), time_text(clocks.outside->valid_until));
  }
  const double off = std::abs(clocks.ahead.value_or(0));
  if (off > kClockAdvice) {
    const Health health = held.empty() && off <= kClockBad ? Health::kAdvice : Health::kBad;
    findings.push_back(finding("clocks", health,
                               fmt::format("{} here, {} there: the coordinator's is {} {}{}", here,
                                           time_text(clocks.here + *clocks.ahead), length_text(off),
                                           *clocks.ahead > 0 ? "ahead" : "behind", held),
                               kSet));
  } else if (clocks.ahead) {
    findings.push_back(
        finding("clocks", Health::kGood, fmt::format("agree within {:.0f} s", kClockAdvice), ""));
    if (!held.empty()) {
      findings.push_back(finding("certificate", Health::kBad, "outdated: it is " + here + held,
                                 "start the coordinator again with --resume, which renews it"));
    }
  } else if (!held.empty()) {
    findings.push_back(finding("clocks", Health::kBad, here + " here" + held, kSet));
  } else {
    findings.push_back(finding("clocks", Health::kAdvice, "the other is not told: " + clocks.why_not,
                               "look whether a coordinator of the same version serves there"));
  }
  return held.empty();
}

// Looks at run: whether the authority is that of the asker's run.
bool check_run(const host::ServedCertificates& served, const std::string& run, const host::Endpoint& at,
               std::vector<Finding>& findings) {
  const auto authority = host::authority_among(served, run, at);
  findings.push_back(authority.ok() ? finding("run", Health::kGood, "served there", "")
                                    : bad("run", authority.error()));
  return authority.ok();
}

}  // namespace

std::vector<Finding> examine_coordinator(const run::NodeHost& host, const host::Endpoint& at,
                                         const node::Asker& asker, const std::string& program) {
  const std::string_view proof = asker.token ? "token" : "credentials";
  std::vector<Finding> findings;
  const auto wanted = wanted_run(host, asker);
  if (!wanted.ok()) findings.push_back(bad(proof, wanted.error()));
  const std::optional<std::string> run = wanted.ok() ? *wanted : std::nullopt;
  const auto served = look_at_server(at, asker.timeout, findings);
  const bool goes_on = served && (!run || check_run(*served, *run, at, findings)) &&
                       check_clocks(look_at_clocks(host, at, *served, asker.timeout), findings);
  if (wanted.ok() && !run)
    findings.push_back(finding("token", Health::kAdvice, "none to try", "add --token T, or --dir DIR"));
  if (!goes_on || !run) return findings;
  const auto status = node::ask_status(host, at, asker);
  if (!status.ok()) {
    const bool refused = status.error().kind == ErrorKind::kRefused;
    findings.push_back(bad(refused ? proof : "coordinator", status.error()));
    return findings;
  }
  findings.push_back(finding(proof, Health::kGood, "accepted", ""));
  const auto facts = node::status_facts(*status);
  if (!facts.ok()) {
    findings.push_back(bad("version", facts.error()));
    return findings;
  }
  findings.push_back(check_program((*facts).program, program));
  return findings;
}

}  // namespace gossamer::commands
