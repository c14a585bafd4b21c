// SPDX-License-Identifier: Apache-2.0
#include "networks.h"

#include <map>
#include <utility>

#include "host/grpc/certificates.h"
#include "host/grpc/network.h"
#include "host/posix/clock.h"
#include "host/posix/mailbox.h"
#include "host/posix/ready_order.h"
#include "host/sim/internet.h"
#include "host/sim/timeline.h"

namespace gossamer::host {
namespace {

// Far more than anything here takes. Only a failing test waits so long.
constexpr double kPatienceSeconds = 300;

class RealWorld final : public NetworkWorld {
 public:
  explicit RealWorld(bool tls) : tls_(tls) {}

  std::unique_ptr<Network> start(const std::string& process, int authority, NetworkSink sink) override {
    const int number = started_++;
    sinks_[number] = std::move(sink);
    return make_grpc_network(
        tls_ ? std::optional(credentials(process, authority)) : std::nullopt,
        [this, number](NetworkEvent event) { mailbox_.push({number, std::move(event)}); });
  }

  [[nodiscard]] Endpoint address(const std::string&) const override { return {"127.0.0.1", 0}; }
  [[nodiscard]] Instant now() const override { return clock_.now(); }

  bool run_until(const std::function<bool()>& done) override {
    const Instant end = clock_.now() + from_seconds(kPatienceSeconds);
    while (!done()) {
      if (clock_.now() >= end) return false;
      auto batch = mailbox_.wait(from_milliseconds(100));
      if (kReadyOrder == ReadyOrder::kDrawn) batch = in_drawn_order(std::move(batch), rng_, source);
      for (auto& [number, event] : batch) sinks_[number](std::move(event));
    }
    return true;
  }

 private:
  NetworkCredentials credentials(const std::string& process, int authority) {
    const Validity validity{.now_seconds = clock_.wall_seconds(), .days = 1};
    if (authority == kStranger)
      return {.authority = authorities_.at(0).certificate, .certificate = {}, .key = {}};
    if (!authorities_.contains(authority)) authorities_[authority] = *make_authority("test", validity);
    const KeyAndRequest mine = *make_request();
    return {.authority = authorities_[authority].certificate,
            .certificate = *sign_request(authorities_[authority], mine.request, process, validity),
            .key = mine.key};
  }

  bool tls_;
  int started_ = 0;
  using Item = std::pair<int, NetworkEvent>;  // number of the process, event
  static EventSource source(const Item& item) {
    const auto [kind, id] = source_of(item.second);
    return {kind + 10 * static_cast<std::uint64_t>(item.first), id};
  }

  PosixClock clock_;
  Rng rng_{static_cast<std::uint64_t>(clock_.now().ns), Purpose::kTest};
  std::map<int, KeyAndCertificate> authorities_;
  std::map<int, NetworkSink> sinks_;
  Mailbox<Item> mailbox_;
};

class SimWorld final : public NetworkWorld {
 public:
  std::unique_ptr<Network> start(const std::string& process, int authority, NetworkSink sink) override {
    return internet_.attach(process, {authority == kStranger ? "" : process}, std::move(sink));
  }
  [[nodiscard]] Endpoint address(const std::string& process) const override { return {process, 0}; }
  [[nodiscard]] Instant now() const override { return timeline_.now(); }

  bool run_until(const std::function<bool()>& done) override {
    const Instant end = timeline_.now() + from_seconds(kPatienceSeconds);
    while (!done()) {
      if (timeline_.now() >= end) return false;
      timeline_.run_until(timeline_.now() + from_milliseconds(1));
    }
    return true;
  }

 private:
  Timeline timeline_{7};
  SimInternet internet_{timeline_, 7};
};

}  // namespace

std::string name(NetworkKind kind) {
  switch (kind) {
    case NetworkKind::kPlain: return "Plain";
    case NetworkKind::kTls: return "Tls";
    case NetworkKind::kSim: break;
  }
  return "Sim";
}
void PrintTo(NetworkKind kind, std::ostream* out) { *out << name(kind); }

std::unique_ptr<NetworkWorld> make_world(NetworkKind kind) {
  if (kind == NetworkKind::kSim) return std::make_unique<SimWorld>();
  return std::make_unique<RealWorld>(kind == NetworkKind::kTls);
}

void NetworkTest::TearDown() {
  for (Recorder& process : processes_) process.network.reset();
}

Recorder& NetworkTest::start(const std::string& name, int authority) {
  Recorder& process = processes_.emplace_back();
  process.name = name;
  process.network = world_->start(name, authority, [&process](NetworkEvent event) {
    if (const auto* const received = std::get_if<Received>(&event); received != nullptr && process.consumes) {
      process.network->consumed(received->connection, Network::cost(received->frame));
    }
    process.events.push_back(std::move(event));
  });
  return process;
}

Endpoint NetworkTest::listen(Recorder& process, Lane lane) {
  const auto bound = process.network->listen(world_->address(process.name), lane);
  EXPECT_TRUE(bound.ok());
  return bound.ok() ? *bound : Endpoint{};
}

ConnectionPair NetworkTest::join(Recorder& from, Recorder& to, const Endpoint& at, Lane lane) {
  const std::size_t opened = from.all<Opened>().size();
  const std::size_t accepted = to.all<Accepted>().size();
  const ConnectionId id = from.network->connect(at, lane);
  EXPECT_TRUE(world_->run_until(
      [&] { return from.all<Opened>().size() > opened && to.all<Accepted>().size() > accepted; }));
  const auto arrivals = to.all<Accepted>();
  return {id, arrivals.empty() ? ConnectionId{} : arrivals.back().connection};
}

}  // namespace gossamer::host
