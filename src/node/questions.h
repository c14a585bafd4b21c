// SPDX-License-Identifier: Apache-2.0
//
// The questions that users ask a coordinator beside joining: its status, its clock, to expel nodes and
// to stop (docs/protocols/admission.md). Also makes the tokens of users. Thread rule: plain
// functions; those that ask block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/admission/token.h"
#include "host/api/endpoint.h"
#include "run/node_host.h"

namespace gossamer::node {

inline constexpr const char* kStatusMethod = "Status";
inline constexpr const char* kStopMethod = "Stop";
inline constexpr const char* kClockMethod = "Clock";
inline constexpr const char* kExpelMethod = "Expel";

struct NewToken {
  host::Endpoint at;
  std::int64_t seconds = std::int64_t{24} * 3600;
  std::string note;
  std::optional<std::uint64_t> uses = {};  // nodes that it may let in; nothing: any number
};
// Makes a token of the run in `directory`, keeps it there and returns it as text.
[[nodiscard]] Result<std::string> make_token(const run::NodeHost& host, const std::string& directory,
                                             const NewToken& wanted);

// Checks that the run of this authority (PEM) is served there. kRefused if another run is, otherwise the
// errors of host::fetch_authority(). TLS itself would only say that a handshake failed.
[[nodiscard]] Result<void> expect_run(const host::Endpoint& at, const std::string& authority,
                                      Duration timeout);

// Looks whether a server of ours answers there, of whatever run. kFailed if none does.
[[nodiscard]] Result<void> expect_answer(const host::Endpoint& at, Duration timeout);

// How a user proves the right to ask: with a token, or with the credentials in a run directory.
struct Asker {
  std::optional<std::string> token = std::nullopt;
  std::string directory = {};
  Duration timeout = from_seconds(5);
};
// Asks for the status object, as JSON.
[[nodiscard]] Result<std::string> ask_status(const run::NodeHost& host, const host::Endpoint& at,
                                             const Asker& asker);
[[nodiscard]] Result<void> ask_stop(const run::NodeHost& host, const host::Endpoint& at, const Asker& asker);

// Nodes by number, or all that a token let in.
struct ExpelWish {
  std::vector<NodeId> nodes = {};
  std::string token = {};  // its id; empty: none
};
struct ExpelOutcome {
  std::vector<NodeId> nodes;        // that are expelled now, and were meant
  std::vector<std::string> tokens;  // ids of tokens that let them in; they are revoked
};
// Expels nodes of the run in the coordinator's `directory`. Asks its coordinators until one that leads
// answers.
[[nodiscard]] Result<ExpelOutcome> ask_expel(const run::NodeHost& host, const std::string& directory,
                                             const ExpelWish& wish);
// The coordinator's half of Expel: the wish in the question, and its answer.
[[nodiscard]] Result<ExpelWish> read_expel_question(const std::string& body);
[[nodiscard]] std::string expel_answer(const ExpelOutcome& outcome);

// Asks the server at `at` for its clock, in seconds since 1970-01-01 UTC. Nothing is proven on the way, so
// that the question works whatever the clock here says. `certificate` is PEM, any that is served there.
[[nodiscard]] Result<double> ask_clock(const host::Endpoint& at, const std::string& certificate,
                                       Duration timeout);
// The coordinator's half of Clock: its answer.
[[nodiscard]] std::string clock_answer(double now_seconds);

// The coordinator's half of Status: the token's id and secret in the question.
struct StatusProof {
  std::string id;
  std::string secret;
};
[[nodiscard]] Result<StatusProof> read_status_question(const std::string& body);

}  // namespace gossamer::node
