// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"
#include "commands/bench/bench_options.h"
#include "host/grpc/certificates.h"
#include "host/grpc/network.h"
#include "node/admission/credentials.h"
#include "node/admission/random_text.h"
#include "node/event_loop.h"

namespace gossamer::commands {
namespace {

using settings::Key;

constexpr const char* kRun = "bench-links";
constexpr std::string_view kLoopback = "127.0.0.1";
constexpr std::array kAsked = {LinkTrial::kMessage, LinkTrial::kMessages, LinkTrial::kExchange,
                               LinkTrial::kControlBesideBulk};

// Words between commas, empty ones too.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

std::optional<std::string> set_peers(BenchLinks& options, const Key& /*key*/, std::string_view text) {
  std::vector<host::Endpoint> peers;
  for (const std::string_view word : words_of(text)) {
    auto peer = host::parse_endpoint(word);
    if (!peer.ok() || peer->port == 65535) return "HOST:PORT,HOST:PORT,... with ports below 65535";
    peers.push_back(*peer);
  }
  if (peers.size() < 2 || peers.size() > 64) return "2 to 64 nodes, this one among them";
  options.peers = std::move(peers);
  return std::nullopt;
}

std::string peers_text(const BenchLinks& options, const Key& /*key*/) {
  std::vector<std::string> peers;
  for (const host::Endpoint& peer : options.peers) peers.push_back(host::to_string(peer));
  return fmt::format("{}", fmt::join(peers, ","));
}

std::string names_of(std::span<const LinkTrial> trials, std::string_view between) {
  std::vector<std::string_view> names;
  for (const LinkTrial trial : trials) names.emplace_back(name(trial));
  return fmt::format("{}", fmt::join(names, between));
}

// Round trips are always measured.
std::optional<std::string> set_measure(BenchLinks& options, const Key& /*key*/, std::string_view text) {
  std::vector<LinkTrial> trials = {LinkTrial::kRoundTrip};
  for (const std::string_view word : words_of(text)) {
    const auto* const found = std::ranges::find_if(kAsked, [&](LinkTrial one) { return word == name(one); });
    if (found == kAsked.end()) return "some of " + names_of(kAsked, ", ");
    trials.push_back(*found);
  }
  options.plan.trials = std::move(trials);
  return std::nullopt;
}

std::string measure_text(const BenchLinks& options, const Key& /*key*/) {
  return names_of(std::span(options.plan.trials).subspan(1), ",");
}

// One node of the mesh.
class MeshNode {
 public:
  MeshNode(const run::NodeHost& host, const BenchLinks& options, NodeId self)
      : host_(host), options_(options), self_(self) {}
  ~MeshNode() { network_.reset(); }
  MeshNode(const MeshNode&) = delete;
  MeshNode& operator=(const MeshNode&) = delete;

  // Listens, and returns this node's address for others.
  [[nodiscard]] Result<net::PeerAddress> listen(node::EventLoop& loop,
                                                std::optional<host::NetworkCredentials> credentials,
                                                const host::Endpoint& at);
  // Opens links to the nodes that come after this one in `mesh`, which lists all nodes.
  void open(const std::vector<net::PeerAddress>& mesh);

  [[nodiscard]] Instant work(Instant now) {
    net::LinkEvents out;
    links_->tick(now, out);
    take(out, now);
    trials_->tick(now);
    return std::min(links_->next_wakeup().value_or(trials_->next_wakeup()), trials_->next_wakeup());
  }
  [[nodiscard]] const LinkTrials& trials() const { return *trials_; }
  [[nodiscard]] NodeId self() const { return self_; }

 private:
  void take(const net::LinkEvents& events, Instant now) {
    for (const net::LinkEvent& event : events) trials_->on(event, now);
  }

  const run::NodeHost& host_;
  const BenchLinks& options_;
  const NodeId self_;
  std::unique_ptr<net::Links> links_;
  std::unique_ptr<LinkTrials> trials_;
  std::unique_ptr<host::Network> network_;  // threads of the network post to the loop
};

Result<net::PeerAddress> MeshNode::listen(node::EventLoop& loop,
                                          std::optional<host::NetworkCredentials> credentials,
                                          const host::Endpoint& at) {
  network_ = host::make_grpc_network(std::move(credentials), [this, &loop](host::NetworkEvent event) {
    const host::EventSource source = host::source_of(event);
    loop.post(source, [this, &loop, event = std::move(event)]() mutable {
      net::LinkEvents out;
      links_->on(std::move(event), loop.now(), out);
      take(out, loop.now());
    });
  });
  const auto control = network_->listen(at, host::Lane::kControl);
  if (!control.ok()) return control.error();
  const auto bulk_port = static_cast<std::uint16_t>(at.port == 0 ? 0 : at.port + 1);
  const auto bulk = network_->listen({at.host, bulk_port}, host::Lane::kBulk);
  if (!bulk.ok()) return bulk.error();
  links_ = std::make_unique<net::Links>(*network_, net::Links::Options{.run = kRun,
                                                                       .self = {self_, Incarnation{1}},
                                                                       .program = "bench links",
                                                                       .seed = node::random_seed()});
  return net::PeerAddress{.node = self_, .control = *control, .bulk = *bulk};
}

void MeshNode::open(const std::vector<net::PeerAddress>& mesh) {
  const Instant now = host_.clock.now();
  const bool leads = self_ == NodeId{1};
  trials_ = std::make_unique<LinkTrials>(
      *links_,
      LinkTrials::Options{.self = self_,
                          .nodes = mesh.size(),
                          .plan = options_.plan,
                          .patience = from_seconds(options_.patience),
                          .cpu = [this] { return host_.clock.process_cpu(); },
                          .begun =
                              [this, leads](LinkTrial trial) {
                                if (leads) host_.say(fmt::format("measuring {}", name(trial)));
                              }},
      now);
  for (const net::PeerAddress& peer : mesh) {
    if (peer.node > self_) links_->open(peer, now);
  }
}

// The authority in the directory. It is made if there is none.
Result<node::RunCredentials> authority_in(const run::NodeHost& host, const std::string& directory,
                                          const host::Validity& validity) {
  auto there = node::has_membership(host.disk, directory);
  if (!there.ok()) return there.error();
  if (*there) return node::load_run_credentials(host.disk, directory, validity.now_seconds);
  if (auto made = host.disk.make_directories(directory); !made.ok()) return made.error();
  const auto lock = host.disk.lock(directory);  // two processes that begin at once would make two
  if (!lock.ok()) return lock.error();
  there = node::has_membership(host.disk, directory);
  if (!there.ok()) return there.error();
  if (*there) return node::load_run_credentials(host.disk, directory, validity.now_seconds);
  return node::create_run_credentials(host.disk, directory, kRun, validity);
}

Result<std::optional<host::NetworkCredentials>> credentials(const run::NodeHost& host,
                                                            const std::string& directory, NodeId node) {
  if (directory.empty()) return std::optional<host::NetworkCredentials>();
  const host::Validity validity{.now_seconds = host.clock.wall_seconds()};
  const auto run = authority_in(host, directory, validity);
  if (!run.ok()) return run.error();
  const auto mine = host::make_request();
  if (!mine.ok()) return mine.error();
  const auto certificate =
      host::sign_request((*run).authority, (*mine).request, certificate_name(node), validity);
  if (!certificate.ok()) return certificate.error();
  return std::optional(host::NetworkCredentials{
      .authority = (*run).authority.certificate, .certificate = *certificate, .key = (*mine).key});
}

Result<void> check(const BenchLinks& options) {
  if (options.peers.empty() || options.node <= options.peers.size()) return {};
  return bench_links_keys().refused_word({"node", std::to_string(options.node)},
                                         fmt::format("1..{}, the place in peers", options.peers.size()));
}

// The nodes of this process, listening, and the addresses of all.
struct Mesh {
  std::vector<std::unique_ptr<MeshNode>> here;
  std::vector<net::PeerAddress> all;
};

Result<void> add_node(const run::NodeHost& host, const BenchLinks& options, node::EventLoop& loop,
                      NodeId self, const host::Endpoint& at, Mesh& mesh) {
  auto mine = credentials(host, options.authority, self);
  if (!mine.ok()) return mine.error();
  mesh.here.push_back(std::make_unique<MeshNode>(host, options, self));
  auto address = mesh.here.back()->listen(loop, std::move(*mine), at);
  if (!address.ok()) return address.error();
  mesh.all.push_back(*address);
  return {};
}

Result<void> make_mesh(const run::NodeHost& host, const BenchLinks& options, node::EventLoop& loop,
                       Mesh& mesh) {
  if (options.peers.empty()) {
    for (NodeId node{1}; node.value <= options.nodes; ++node) {
      auto added = add_node(host, options, loop, node, {std::string(kLoopback), 0}, mesh);
      if (!added.ok()) return added;
    }
  } else {
    host::Endpoint at = options.peers[options.node - 1];
    if (!options.listen.empty()) at.host = options.listen;
    auto added = add_node(host, options, loop, NodeId{options.node}, at, mesh);
    if (!added.ok()) return added;
    mesh.all.clear();
    for (const host::Endpoint& peer : options.peers) {
      mesh.all.push_back({.node = NodeId{mesh.all.size() + 1},
                          .control = peer,
                          .bulk = {peer.host, static_cast<std::uint16_t>(peer.port + 1)}});
    }
  }
  for (const auto& node : mesh.here) node->open(mesh.all);
  return {};
}

}  // namespace

const settings::KeyTable<BenchLinks>& bench_links_keys() {
  using settings::key;
  using B = BenchLinks;
  using P = LinkTrialPlan;
  static const settings::KeyTable<B> table(
      {.listed_by = "gossamer bench links --help", .one = "an option"},
      {key<&B::node>("node", {.min = 1, .max = 64}, "which of the peers this process is"),
       key<&B::nodes>("nodes", {.min = 2, .max = 4}, "of a mesh in this process, without peers"),
       key<&B::plan, &P::bytes>("bytes", {.min = 1, .max = 1ULL << 30}, "of a transfer"),
       key<&B::plan, &P::message_bytes>("message_bytes", {.min = 1, .max = 1ULL << 20},
                                        "of each of many small messages"),
       key<&B::plan, &P::exchange_bytes>("exchange_bytes", {.min = 1, .max = 1ULL << 24},
                                         "to each peer in a round"),
       key<&B::plan, &P::transfers>("transfers", {.min = 1, .max = 1000},
                                    "of each kind, the first on a cold line"),
       key<&B::plan, &P::rounds>("rounds", {.min = 1, .max = 1'000'000}, "of the exchange"),
       key<&B::plan, &P::pings>("pings", {.min = 1, .max = 1'000'000},
                                "control messages, idle and beside bulk"),
       key<&B::rate_mbps>("rate_mbps", {.max = 1e6}, "of the line, for shares of it; 0: unknown"),
       key<&B::patience>("patience", {.min = 1, .max = 86400}, "seconds without any progress"),
       {.key = {.name = "peers",
                .help = " where node 1, 2, ... listen; bulk one port higher",
                .rules = {.shown = "HOST:PORT,..."}},
        .get = peers_text,
        .set = set_peers},
       key<&B::listen>("listen", {.shown = "HOST"}, "to listen at, such as 0.0.0.0; else as in peers"),
       key<&B::authority>("authority", {.shown = "DIR"},
                          "mutual TLS by the authority there, made if missing"),
       {.key = {.name = "measure",
                .help = "message, messages, exchange, control-beside-bulk",
                .rules = {.shown = "KIND,..."}},
        .get = measure_text,
        .set = set_measure}});
  return table;
}

Result<BenchLinksResult> bench_links(const run::NodeHost& host, const BenchLinks& options) {
  if (auto good = check(options); !good.ok()) return good.error();
  const std::uint64_t here = options.peers.empty() ? options.nodes : 1;
  // A message that waits costs some 300 bytes beside its own.
  const std::uint64_t messages = options.plan.bytes / options.plan.message_bytes + 1;
  auto fits = check_bench_memory(host, here * (3 * options.plan.bytes + 512 * messages + (64ULL << 20)),
                                 "lower bytes, or raise message_bytes");
  if (!fits.ok()) return fits.error();
  node::EventLoop loop(host.clock);
  Mesh mesh;
  if (auto made = make_mesh(host, options, loop, mesh); !made.ok()) return made.error();
  const auto work = [&]() -> std::optional<Instant> {
    std::optional<Instant> wake;
    for (const auto& node : mesh.here) {
      const Instant next = node->work(loop.now());
      wake = wake.has_value() ? std::min(*wake, next) : next;
    }
    return wake;
  };
  const auto failed = [](const auto& node) { return node->trials().failure().has_value(); };
  loop.run(work, [&] {
    return std::ranges::any_of(mesh.here, failed) ||
           std::ranges::all_of(mesh.here, [](const auto& node) { return node->trials().over(); });
  });
  BenchLinksResult result;
  for (const auto& node : mesh.here) {
    if (failed(node)) return *node->trials().failure();
    result.nodes.push_back({node->self().value, link_figures(node->trials().times(), options.rate_mbps)});
  }
  return result;
}

std::string to_json(const BenchLinksResult& result, const BenchLinks& options) {
  nlohmann::ordered_json json;
  json["tls"] = !options.authority.empty();
  json["nodes"] = nlohmann::ordered_json::array();
  for (const BenchLinksNode& node : result.nodes) {
    nlohmann::ordered_json measurements = nlohmann::ordered_json::array();
    for (const LinkFigures& f : node.figures) {
      measurements.push_back({{"name", name(f.trial)},
                              {"bytes", f.bytes},
                              {"count", f.count},
                              {"first_ms", f.first},
                              {"least_ms", f.least},
                              {"median_ms", f.median},
                              {"p90_ms", f.p90},
                              {"most_ms", f.most},
                              {"mbps", f.mbps},
                              {"share_of_rate", f.share},
                              {"cpu_s", f.cpu_seconds}});
    }
    json["nodes"].push_back({{"node", node.node}, {"measurements", std::move(measurements)}});
  }
  json["options"] = bench_options_json(bench_links_keys().values(options));
  return json.dump();
}

std::string to_text(const BenchLinksResult& result) {
  std::string text = fmt::format("{:<6}{:<20}{:>12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>7}\n", "node", "ms",
                                 "bytes", "first", "median", "p90", "most", "Mb/s", "share");
  for (const BenchLinksNode& node : result.nodes) {
    for (const LinkFigures& f : node.figures) {
      const auto known = [](double value, const std::string& shown) {
        return value > 0 ? shown : std::string();
      };
      text += fmt::format("{:<6}{:<20}{:>12}{:>10}{:>10.2f}{:>10.2f}{:>10.2f}{:>10}{:>7}\n", node.node,
                          name(f.trial), f.bytes, known(f.first, fmt::format("{:.2f}", f.first)), f.median,
                          f.p90, f.most, known(f.mbps, fmt::format("{:.1f}", f.mbps)),
                          known(f.share, fmt::format("{:.0f} %", 100 * f.share)));
    }
  }
  return text;
}

}  // namespace gossamer::commands
