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
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
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

// TokenShare shares them once in each lead. Where that fails it is tried again each second: until the store's
// tokens are here, one that is revoked may count. A record that cannot be read is no better the next time,
// and holds nothing up.
class TokenShare {
 public:
  static constexpr Duration kTryEvery{1'000'000'000};
  struct Lead {
    Generation generation;
    std::int64_t wall_seconds = 0;
    Instant now;
  };
  // Shares, where that is due. Returns the errors of the first attempt of this lead alone.
  [[nodiscard]] std::vector<Error> share(cluster::TokenBook& book, cluster::Coordinator& coordinator,
                                         const Lead& lead);
  // Whether a stranger may show a token in this lead: kFailed until the tokens are shared.
  [[nodiscard]] Result<void> shared(Generation lead) const;

 private:
  std::optional<Generation> tried_;
  std::optional<Generation> done_;
  Instant next_;
};

// The leading coordinator's half of Tokens. Takes up what the asker knows, and answers with all
// tokens once the store has them.
void answer_tokens(cluster::TokenBook& book, cluster::Coordinator& coordinator, const std::string& question,
                   std::int64_t now, const cluster::Coordinator::Answer& answer);

// What the book knows, as questions of Tokens that are each short enough to be asked.
[[nodiscard]] Result<std::vector<std::string>> token_questions(cluster::TokenBook& book, std::int64_t now);

// The asker's half. Afterwards the coordinator's `directory` and the leading coordinator both
// have what either had. Nothing happens where no store is shared. An error says why no
// coordinator has taken the tokens up.
[[nodiscard]] Result<void> exchange_tokens(const run::NodeHost& host, const std::string& directory);

}  // namespace gossamer::node
