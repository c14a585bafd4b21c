// SPDX-License-Identifier: Apache-2.0
#include "node/metrics_endpoint.h"

#include <prometheus/text_serializer.h>

#include <string>
#include <utility>

namespace gossamer::node {
namespace {

constexpr std::size_t kMostScrapes = 16;

}  // namespace

// The page as Prometheus reads it; empty before the first one.
host::HttpReply MetricsEndpoint::reply() const {
  const auto page = page_.get();
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = page == nullptr ? std::string() : prometheus::TextSerializer().Serialize(page->families())};
}

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::listen(const host::Endpoint& at) {
  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint);
  host::HttpOptions options{
      .host = at.host, .port = at.port, .endpoint = {}, .max_connections = kMostScrapes};
  options.live_pages["/metrics"] = [shown = endpoint.get()] { return shown->reply(); };
  auto server = host::HttpServer::start(options);
  if (!server.ok()) {
    Error error = server.error();
    error.what = "cannot listen for Prometheus";
    error.fix = "give --metrics another HOST:PORT, or port 0 for a free one";
    return error;
  }
  endpoint->server_ = *std::move(server);
  endpoint->at_ = {.host = at.host, .port = static_cast<std::uint16_t>(endpoint->server_->port())};
  return endpoint;
}

void MetricsEndpoint::show(MetricsPage page, Instant now) {
  page_.set(std::move(page));
  due_ = now + kEvery;
}

}  // namespace gossamer::node
