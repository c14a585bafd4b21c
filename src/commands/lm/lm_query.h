// SPDX-License-Identifier: Apache-2.0
//
// A line of a user as a prompt for a language model:
//
//   {"text": ... [, "tokens": N, "temperature": X, "top_k": K, "seed": N]}
//   anything else: the prompt itself
//
// A line that begins with "{" is JSON, and a prompt that begins so is given as JSON. An empty line is a
// prompt without a token. A byte order mark in front is left out. Other keys change nothing; they are named,
// for they may be misspelt.
//
// Errors: kBadData with `where` = the query's place, for text that is no UTF-8, JSON that cannot be read or
// has no "text", and values out of range. Thread rule: plain functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "commands/engine/model_requests.h"
#include "commands/engine/query_session.h"

namespace gossamer::commands {

struct LmQuery {
  std::string prompt;
  TextWanted wanted;
  std::vector<std::string> ignored = {};  // keys that change nothing
};
// `otherwise`: what the query does not say.
[[nodiscard]] Result<LmQuery> read_lm_query(const Query& query, const TextWanted& otherwise);

}  // namespace gossamer::commands
