// SPDX-License-Identifier: Apache-2.0
//
// MetricsPage is what one scrape shows. It is collected on the loop thread and handed to the endpoint as a
// value. Names, labels and meanings: docs/protocols/metrics.md. Thread rule: plain value.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/time.h"
#include "cluster/control/coordinator_process.h"
#include "cluster/control/member_process.h"
#include "net/link/links.h"

namespace gossamer::node {

// The node that shows a page.
struct MetricsOwner {
  std::string run;
  std::string program;
  NodeId node;
  double started = 0;                                            // seconds since 1970-01-01 UTC
  const std::map<std::string, std::uint64_t>* events = nullptr;  // by kind, since the start; not null
};

class MetricsPage {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  void gauge(const std::string& name, const std::string& help, double value, Labels labels = {});
  void counter(const std::string& name, const std::string& help, double value, Labels labels = {});
  // Adds the counters of one module.
  void counters(std::span<const CounterSample> samples);

  // The families, in the order in which their names first came.
  [[nodiscard]] const std::vector<prometheus::MetricFamily>& families() const { return families_; }

 private:
  prometheus::ClientMetric& add(prometheus::MetricType type, const std::string& name, const std::string& help,
                                Labels labels);

  std::vector<prometheus::MetricFamily> families_;
};

[[nodiscard]] MetricsPage coordinator_metrics(const MetricsOwner& owner, cluster::CoordinatorProcess& process,
                                              bool store_fails);
// `engine` has the counters of the member's engine.
[[nodiscard]] MetricsPage member_metrics(const MetricsOwner& owner, cluster::MemberProcess& process,
                                         std::span<const CounterSample> engine);

}  // namespace gossamer::node
