// SPDX-License-Identifier: Apache-2.0
//
// QuerySession answers queries of one model. Each engine that answers queries has its own.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"

namespace gossamer::commands {

struct Query {
  std::string text;
  std::string place;  // for messages: "stdin:3"
};

// Queries with keys that nothing looks at. Such keys may be misspelt.
struct IgnoredKeys {
  std::uint64_t queries = 0;
  std::string first;  // the first such key
};

class QuerySession {
 public:
  QuerySession() = default;
  QuerySession(const QuerySession&) = delete;
  QuerySession& operator=(const QuerySession&) = delete;
  virtual ~QuerySession() = default;

  // Hands one JSON line per query to `sink`, in order. When a query cannot be read, the ones before it are
  // answered and its error is returned.
  [[nodiscard]] virtual Result<void> answer(std::span<const Query> queries,
                                            FunctionRef<void(std::string_view json)> sink) = 0;
  // Makes the same lines, with `top` answers each, for every query that can be read, whatever the others are.
  // Calls sink(i, line or error) once for each query i, in any order.
  virtual void answer_each(std::span<const Query> queries, std::size_t top,
                           FunctionRef<void(std::size_t query, const Result<std::string>& answer)> sink) = 0;
  // The queries so far of which the model knows nothing. Their answers are all alike.
  [[nodiscard]] virtual std::uint64_t nothing_known() const { return 0; }
  // The queries so far with keys that change no answer.
  [[nodiscard]] virtual IgnoredKeys ignored_keys() const { return {}; }
  // How many answers a query gets, unless it says otherwise.
  [[nodiscard]] virtual std::size_t top() const = 0;
  // The error for which no later query will be answered, if there is one: what answers has ended. Only a new
  // session helps.
  [[nodiscard]] virtual std::optional<Error> ended() { return std::nullopt; }
  // Describes what is served from `directory`, as one JSON object on a line.
  [[nodiscard]] virtual std::string describe(const std::string& directory) const = 0;
};

}  // namespace gossamer::commands
