// SPDX-License-Identifier: Apache-2.0
//
// Shared tokens are those of a run with several coordinators and one store (docs/protocols/admission.md,
// "Shared tokens"). Each coordinator has the tokens in its directory. The leading one also has them in
// the store, for its successor. It takes up the tokens that `gossamer token` made or revoked in the
// directory of another coordinator.
//
// Thread rule: plain functions, the caller's thread; exchange_tokens() blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/admission/token_book.h"
#include "cluster/control/coordinator.h"
#include "run/node_host.h"

namespace gossamer::node {

inline constexpr const char* kTokensMethod = "Tokens";
// Seconds for which a token is told and kept in the store after it expired. A process that shows it is
// then told that it has expired.
inline constexpr std::int64_t kTokenRemembered = std::int64_t{30} * 24 * 3600;

// Merges the tokens of book and store, so that both have what either had. Returns
// what cannot be read or written.
[[nodiscard]] std::vector<Error> share_tokens(cluster::TokenBook& book, cluster::Coordinator& coordinator,
                                              std::int64_t now);

// The leading coordinator's half of Tokens. Takes up what the asker knows, and answers with all
// tokens once the store has them.
void answer_tokens(cluster::TokenBook& book, cluster::Coordinator& coordinator, const std::string& question,
                   std::int64_t now, const cluster::Coordinator::Answer& answer);

// The asker's half. Afterwards the coordinator's `directory` and the leading coordinator both
// have what either had. Nothing happens where no store is shared. An error says why no
// coordinator has taken the tokens up.
[[nodiscard]] Result<void> exchange_tokens(const run::NodeHost& host, const std::string& directory);

}  // namespace gossamer::node
