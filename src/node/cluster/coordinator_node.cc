// SPDX-License-Identifier: Apache-2.0
#include "node/cluster/coordinator_node.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "base/check.h"
#include "cluster/admission/enrolment.h"
#include "host/grpc/network.h"
#include "host/posix/etcd_store.h"
#include "host/posix/sqlite_store.h"
#include "net/wire/frame.h"
#include "node/cluster/cluster_status.h"
#include "node/cluster/enrolling.h"
#include "node/cluster/questions.h"
#include "node/cluster/random_text.h"

namespace gossamer::node {
namespace {

constexpr int kCertificateDays = 3650;
constexpr std::int64_t kTokenSeconds = 24 * 3600;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

membership::Address address_message(const host::Endpoint& at) {
  membership::Address address;
  address.set_host(at.host);
  address.set_port(at.port);
  return address;
}

bool is_wildcard(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; }

}  // namespace

CoordinatorNode::CoordinatorNode(const NodeHost& host, CoordinatorOptions options,
                                 cluster::Workload& workload)
    : host_(host),
      options_(std::move(options)),
      workload_(workload),
      tokens_(host.disk, options_.directory + "/tokens"),
      log_(host.disk, host.clock, {.metrics = {}, .events = options_.directory + "/events.jsonl"}),
      loop_(host.clock) {}

CoordinatorNode::~CoordinatorNode() {
  store_.reset();
  network_.reset();
}

Result<std::unique_ptr<CoordinatorNode>> CoordinatorNode::start(const NodeHost& host,
                                                                CoordinatorOptions options,
                                                                cluster::Workload& workload) {
  std::unique_ptr<CoordinatorNode> node(new CoordinatorNode(host, std::move(options), workload));
  if (auto prepared = node->prepare(); !prepared.ok()) return prepared.error();
  if (auto listens = node->listen(workload); !listens.ok()) return listens.error();
  return node;
}

Result<void> CoordinatorNode::prepare() {
  const std::string& directory = options_.directory;
  if (is_wildcard(options_.listen.host) && options_.advertise.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--listen",
                 .what = "others cannot reach this address",
                 .got = host::to_string(options_.listen),
                 .expected = "an address or name of this machine",
                 .fix = "add --advertise NAME, how nodes reach this machine"};
  }
  const auto known = has_membership(host_.disk, directory);
  if (!known.ok()) return known.error();
  if (*known && !options_.resume) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = directory,
                 .what = "the directory holds a run",
                 .fix = "use --resume to lead it again, or another directory"};
  }
  if (auto made = host_.disk.make_directories(directory); !made.ok()) return made;
  auto lock = host_.disk.lock(directory);
  if (!lock.ok()) return lock.error();
  lock_ = std::move(*lock);
  const double now = host_.clock.wall_seconds();
  auto credentials = *known ? load_run_credentials(host_.disk, directory, now)
                            : create_run_credentials(host_.disk, directory, hexadecimal(random_bytes(8)),
                                                     {.now_seconds = now, .days = kCertificateDays});
  if (!credentials.ok()) return credentials.error();
  credentials_ = std::move(*credentials);
  return {};
}

Result<std::unique_ptr<host::Store>> CoordinatorNode::open_store() const {
  const std::string text =
      options_.store.empty() ? "sqlite:" + options_.directory + "/coordinator.sqlite" : options_.store;
  if (text.starts_with("sqlite:") && text.size() > 7) {
    std::unique_ptr<host::Store> store = std::make_unique<host::SqliteStore>(text.substr(7));
    return store;
  }
  if (text.starts_with("etcd:")) {
    auto store = host::EtcdStore::create({.urls = split(text.substr(5)), .run = credentials_.own.run});
    if (!store.ok()) return store.error();
    return std::unique_ptr<host::Store>(std::move(*store));
  }
  return Error{.kind = ErrorKind::kUsage,
               .where = "--store",
               .what = "unknown store",
               .got = text,
               .expected = "sqlite:FILE or etcd:URL,...",
               .fix = "leave it out to keep a file in the run directory"};
}

Result<void> CoordinatorNode::listen(cluster::Workload& workload) {
  auto store = open_store();
  if (!store.ok()) return store.error();
  network_ = host::make_grpc_network(credentials_.own.credentials, [this](host::NetworkEvent event) {
    loop_.post([this, event = std::move(event)]() mutable { on_network(std::move(event)); });
  });
  const auto control = network_->listen(options_.listen, host::Lane::kControl);
  if (!control.ok()) return control.error();
  host::Endpoint bulk_at = options_.listen;
  if (bulk_at.port != 0) ++bulk_at.port;
  const auto bulk = network_->listen(bulk_at, host::Lane::kBulk);
  if (!bulk.ok()) return bulk.error();
  const std::string name = options_.advertise.empty() ? options_.listen.host : options_.advertise;
  address_ = {name, control->port};

  cluster::CoordinatorProcess::Options process;
  process.coordinator.run = credentials_.own.run;
  process.coordinator.configuration = options_.configuration;
  process.coordinator.listening = cluster::listening_of(
      {.node = cluster::kCoordinatorNode, .control = address_, .bulk = {name, bulk->port}});
  process.coordinator.coordinators.push_back(address_message(address_));
  for (const host::Endpoint& other : options_.standbys)
    process.coordinator.coordinators.push_back(address_message(other));
  process.coordinator.first_members = options_.first_members;
  process.candidate = {.name = name, .address = host::to_string(address_)};
  process.keep_every = (*store)->keep_every();
  process.lead_time = (*store)->lead_time();
  process.certificates = true;
  process.program = options_.program;
  process.seed = std::random_device()();
  process_ =
      std::make_unique<cluster::CoordinatorProcess>(std::move(process), *network_, workload, loop_.now());
  store_ = std::make_unique<StoreThread>(std::move(*store), [this](cluster::StoreAnswer answer) {
    loop_.post(
        [this, answer = std::move(answer)]() mutable { process_->answered(std::move(answer), loop_.now()); });
  });
  return {};
}

Result<std::string> CoordinatorNode::new_token(const std::string& note) {
  return make_token(host_, options_.directory, {.at = address_, .seconds = kTokenSeconds, .note = note});
}

void CoordinatorNode::on_network(host::NetworkEvent event) {
  const auto* const asked = std::get_if<host::Asked>(&event);
  const bool leads = process_->coordinator() != nullptr;
  if (asked != nullptr && leads && asked->method == cluster::kEnrollMethod) return on_enroll(*asked);
  if (asked != nullptr && leads && asked->method == kStatusMethod) return on_status(*asked);
  if (asked != nullptr && leads && asked->method == kStopMethod) return on_stop(*asked);
  process_->on(std::move(event), loop_.now());
}

void CoordinatorNode::on_enroll(const host::Asked& asked) {
  const cluster::RunIdentity identity{.run = credentials_.own.run,
                                      .authority = credentials_.authority.certificate,
                                      .wire = {net::kWireMin, net::kWireMax}};
  const auto now = static_cast<std::int64_t>(host_.clock.wall_seconds());
  const auto request = cluster::check_enroll(asked.body, identity, tokens_, now);
  if (!request.ok()) {
    log_.event("enrol_refused", {{"from", asked.from}, {"why", request.error().message()}});
    return network_->answer(asked.question, request.error());
  }
  process_->coordinator()->give_node(
      [this, identity, request = *request, question = asked.question](NodeId node) {
        const auto signer = signer_of(credentials_.authority,
                                      {.now_seconds = host_.clock.wall_seconds(), .days = kCertificateDays});
        network_->answer(question, cluster::admit(request, node, identity, signer));
      });
}

Result<void> CoordinatorNode::may_see(const host::Asked& asked) {
  if (!asked.peer.certificate.empty()) return {};
  const auto proof = read_status_question(asked.body);
  if (!proof.ok()) return proof.error();
  const auto now = static_cast<std::int64_t>(host_.clock.wall_seconds());
  const auto record = tokens_.check(proof->id, proof->secret, now);
  return record.ok() ? Result<void>() : record.error();
}

void CoordinatorNode::on_status(const host::Asked& asked) {
  if (auto allowed = may_see(asked); !allowed.ok()) return network_->answer(asked.question, allowed.error());
  network_->answer(asked.question,
                   status_json(*process_->coordinator(),
                               {.run = credentials_.own.run, .program = options_.program}, loop_.now()));
}

void CoordinatorNode::on_stop(const host::Asked& asked) {
  if (asked.peer.certificate != cluster::certificate_name(cluster::kCoordinatorNode)) {
    return network_->answer(asked.question, Error{.kind = ErrorKind::kRefused,
                                                  .what = "only the run's own directory may stop it",
                                                  .got = asked.peer.certificate,
                                                  .fix = "run 'gossamer stop' on the coordinator's machine"});
  }
  process_->coordinator()->stop("somebody ran 'gossamer stop'", loop_.now());
  network_->answer(asked.question, std::string());
}

void CoordinatorNode::tell_events() {
  cluster::Coordinator* const coordinator = process_->coordinator();
  if (led_ != (coordinator != nullptr)) {
    led_ = coordinator != nullptr;
    const std::uint64_t generation = process_->generation().value;
    log_.event(led_ ? "leads" : "stands_by", {{"generation", generation}});
    host_.say(led_ ? fmt::format("leads run {}, generation {}", credentials_.own.run, generation)
                   : "another coordinator leads; this one stands by");
  }
  if (coordinator == nullptr) return;
  for (const cluster::RunEvent& event : coordinator->take_events()) {
    log_.event(event.kind, {{"epoch", event.epoch.value},
                            {"node", event.peer.node.value},
                            {"incarnation", event.peer.incarnation.value},
                            {"text", event.text}});
    host_.say(event.peer.node.value == 0
                  ? fmt::format("epoch {}: {}: {}", event.epoch.value, event.kind, event.text)
                  : fmt::format("epoch {}: {}: node {}: {}", event.epoch.value, event.kind,
                                event.peer.node.value, event.text));
  }
}

std::optional<Instant> CoordinatorNode::work() {
  process_->tick(loop_.now());
  if (auto call = process_->next_call(loop_.now())) store_->call(std::move(*call));
  tell_events();
  return process_->next_wakeup();
}

Result<void> CoordinatorNode::run(const host::PosixSignals& signals) {
  const auto stopped = [this] {
    return process_->coordinator() != nullptr && process_->coordinator()->stopped();
  };
  loop_.run([this] { return work(); },
            [&] { return signals.stop_requested() || process_->failure().has_value() || stopped(); });
  if (process_->failure()) return *process_->failure();
  if (stopped()) host_.say("the run has ended: all members have left");
  return {};
}

}  // namespace gossamer::node
