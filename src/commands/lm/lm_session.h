// SPDX-License-Identifier: Apache-2.0
//
// LmSession: texts that go on with a user's prompts (lm_query.h). The line of a query:
//
//   {"text":"Once upon a time","tokens":7}
//
// "text" is the prompt and what was added to it; "tokens" counts what was added. The model may end a text
// before all tokens are there. Bytes that are no UTF-8, such as a character that was not ended, become
// U+FFFD. "ignored_keys" is there when the query has keys that change nothing. A prompt without a token
// begins a text.
//
// Equal queries have equal answers: a draw follows from the seed and the number of the token alone. Where a
// query does not say it, 200 tokens are added at temperature 1 from all tokens, with seed 1.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <memory>

#include "base/result.h"
#include "commands/engine/model_requests.h"
#include "commands/engine/query_session.h"
#include "commands/lm/lm_modules.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Errors: those of load_lm().
[[nodiscard]] Result<std::unique_ptr<QuerySession>> open_lm_session(const run::NodeHost& host,
                                                                    const LmModules& modules,
                                                                    const OpenModel& wanted);

}  // namespace gossamer::commands
