// SPDX-License-Identifier: Apache-2.0
#include "node/metrics_endpoint.h"

#include <prometheus/collectable.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "host/posix/latest.h"

namespace gossamer::node {

class MetricsEndpoint::Shown final : public prometheus::Collectable {
 public:
  void show(MetricsPage page) { page_.set(std::move(page)); }
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override {
    const auto page = page_.get();
    return page == nullptr ? std::vector<prometheus::MetricFamily>() : page->families();
  }

 private:
  host::Latest<MetricsPage> page_;
};

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::listen(const host::Endpoint& at) {
  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint);
  endpoint->at_ = at;
  endpoint->shown_ = std::make_shared<Shown>();
  try {
    endpoint->exposer_ = std::make_unique<prometheus::Exposer>(host::to_string(at));
  } catch (const std::exception& error) {
    return Error{.where = host::to_string(at),
                 .what = "cannot listen for Prometheus",
                 .got = error.what(),
                 .expected = "an address of this machine and a free port",
                 .fix = "give --metrics another HOST:PORT, or port 0 for a free one"};
  }
  endpoint->at_.port = static_cast<std::uint16_t>(endpoint->exposer_->GetListeningPorts().front());
  endpoint->exposer_->RegisterCollectable(endpoint->shown_);
  return endpoint;
}

void MetricsEndpoint::show(MetricsPage page, Instant now) {
  shown_->show(std::move(page));
  due_ = now + kEvery;
}

}  // namespace gossamer::node
