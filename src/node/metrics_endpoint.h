// SPDX-License-Identifier: Apache-2.0
//
// MetricsEndpoint is a node's page for Prometheus, http://HOST:PORT/metrics
// (docs/protocols/metrics.md). It serves the page that it was shown last, so that a scrape never waits
// for the loop, nor the loop for a scrape. Limits on connections, heads and times are those of HttpServer.
//
// Thread rule: one thread calls show(). The endpoint answers on threads of its own.
#pragma once

#include <memory>

#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"
#include "host/posix/http/http_server.h"
#include "host/posix/latest.h"
#include "node/metrics_page.h"

namespace gossamer::node {

class MetricsEndpoint {
 public:
  // Listens for scrapes. Port 0 takes a free one. kFailed if it cannot listen there.
  [[nodiscard]] static Result<std::unique_ptr<MetricsEndpoint>> listen(const host::Endpoint& at);

  [[nodiscard]] const host::Endpoint& at() const { return at_; }
  static constexpr Duration kEvery{1'000'000'000};
  void show(MetricsPage page, Instant now);
  // When the next page is to be shown.
  [[nodiscard]] Instant due() const { return due_; }

 private:
  MetricsEndpoint() = default;
  [[nodiscard]] host::HttpReply reply() const;

  host::Endpoint at_;
  Instant due_;
  host::Latest<MetricsPage> page_;
  std::unique_ptr<host::HttpServer> server_;  // its threads read the page, so it ends first
};

}  // namespace gossamer::node
