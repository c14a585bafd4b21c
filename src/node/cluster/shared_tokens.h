// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a run whose coordinators share a store: docs/protocols/admission.md, "Shared tokens". Each
// coordinator has them in its directory; the one that leads has them in the store too, for its successor, and
// takes up what `gossamer token` made, or revoked, in the directory of another.
//
// Thread rule: plain functions, the caller's thread; exchange_tokens() blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/admission/token_book.h"
#include "cluster/control/coordinator.h"
#include "node/node_host.h"

namespace gossamer::node {

inline constexpr const char* kTokensMethod = "Tokens";
// So long after it expired a token is told and kept in the store: whoever shows it hears that it has expired.
inline constexpr std::int64_t kTokenRemembered = 30 * 24 * 3600;

// Book and store both have what either had. Returns what cannot be read or written.
[[nodiscard]] std::vector<Error> share_tokens(cluster::TokenBook& book, cluster::Coordinator& coordinator,
                                              std::int64_t now);

// The leading coordinator's half of Tokens: takes up what the asker knows, and answers with all, once the
// store has it.
void answer_tokens(cluster::TokenBook& book, cluster::Coordinator& coordinator, const std::string& question,
                   std::int64_t now, const cluster::Coordinator::Answer& answer);

// The asker's: the coordinator's `directory` and the one that leads both have what either had. Nothing
// happens where no store is shared. An error says why no coordinator has taken the tokens up.
[[nodiscard]] Result<void> exchange_tokens(const NodeHost& host, const std::string& directory);

}  // namespace gossamer::node
