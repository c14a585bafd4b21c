// SPDX-License-Identifier: Apache-2.0
//
// PredictionService takes posted bodies as queries and gives answers as replies. The
// content type says what a body is:
//
//   application/json                    one query (an object, or a string) or an array of them;
//                                       the answer is one object or an array
//   application/x-ndjson, text/plain    one query a line, as predict reads them;
//                                       the answer is one JSON line each
//
// The parameter top=K sets how many labels come back. Queries of several requests are answered in one block,
// which costs far less than one by one. The answers are those of predict, byte by byte. A request with a
// query that cannot be read is refused as a whole (400), and the message says which query it is.
//
// Thread rule: the thread that owns the session.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "commands/engine/query_session.h"
#include "host/posix/http/http_server.h"

namespace gossamer::commands {

// Limits for requests taken at a time, queries of one request, labels of a query, and labels of all queries
// of a request. Without them a small body could ask for a reply that does not fit into memory.
inline constexpr std::size_t kRequestsAtOnce = 32;
inline constexpr std::size_t kQueriesPerRequest = 1000;
inline constexpr std::size_t kMostLabels = 10'000;
inline constexpr std::size_t kLabelsPerRequest = 100'000;

class PredictionService {
 public:
  // The session must outlive it.
  explicit PredictionService(QuerySession& session) : session_(session) {}

  // One reply for each request, in their order.
  [[nodiscard]] std::vector<host::HttpReply> answer(std::span<const host::HttpRequest> requests);

 private:
  QuerySession& session_;
};

}  // namespace gossamer::commands
