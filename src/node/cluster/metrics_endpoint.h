// SPDX-License-Identifier: Apache-2.0
//
// MetricsEndpoint: a node's page for Prometheus, http://HOST:PORT/metrics (docs/protocols/metrics.md). It
// serves what it was shown last, so that a scrape never waits for the loop, nor the loop for a scrape.
//
// Thread rule: show() one thread; it answers on threads of its own.
#pragma once

#include <prometheus/exposer.h>

#include <memory>

#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"
#include "node/cluster/metrics_page.h"

namespace gossamer::node {

class MetricsEndpoint {
 public:
  // Port 0 takes a free one. kFailed if it cannot listen there.
  [[nodiscard]] static Result<std::unique_ptr<MetricsEndpoint>> listen(const host::Endpoint& at);

  [[nodiscard]] const host::Endpoint& at() const { return at_; }
  static constexpr Duration kEvery{1'000'000'000};
  void show(MetricsPage page, Instant now);
  // When it should be shown the next.
  [[nodiscard]] Instant due() const { return due_; }

 private:
  class Shown;
  MetricsEndpoint() = default;

  host::Endpoint at_;
  Instant due_;
  std::shared_ptr<Shown> shown_;
  std::unique_ptr<prometheus::Exposer> exposer_;  // its threads read what is shown: it ends first
};

}  // namespace gossamer::node
