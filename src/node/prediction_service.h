// SPDX-License-Identifier: Apache-2.0
//
// PredictionService: posted bodies as queries, answers as replies. What a body is, its content type says:
//
//   application/json       one query (an object, or a string) or an array of them; the answer is one object
//   or
//                          an array
//   application/x-ndjson,  one query a line, as predict reads them; the answer is one JSON line each
//   text/plain
//
// The parameter top=K sets how many labels come back. Queries of several requests are answered in one block,
// which costs far less than one by one; the answers are those of predict, byte by byte. A request with a
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
#include "host/posix/http_server.h"
#include "node/prediction.h"

namespace gossamer::node {

// Requests that are taken at a time, queries that one request may hold, labels that a query may ask for, and
// labels of all queries of a request: a small body could ask for a reply that memory does not hold.
inline constexpr std::size_t kRequestsAtOnce = 32;
inline constexpr std::size_t kQueriesPerRequest = 1000;
inline constexpr std::size_t kMostLabels = 10'000;
inline constexpr std::size_t kLabelsPerRequest = 100'000;

class PredictionService {
 public:
  // The session must outlive it.
  explicit PredictionService(PredictSession& session) : session_(session) {}

  // One reply for each request, in their order.
  [[nodiscard]] std::vector<host::HttpReply> answer(std::span<const host::HttpRequest> requests);

 private:
  PredictSession& session_;
};

// What is served, as one JSON object: directory, task, form of the queries, sizes, number of labels that come
// back.
[[nodiscard]] std::string describe_json(const PredictSession& session, const std::string& directory);

}  // namespace gossamer::node
