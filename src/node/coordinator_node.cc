// SPDX-License-Identifier: Apache-2.0
#include "node/coordinator_node.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/hex.h"
#include "base/node_name.h"
#include "host/api/files.h"
#include "host/grpc/network.h"
#include "host/posix/etcd_store.h"
#include "host/posix/route.h"
#include "host/posix/sqlite_store.h"
#include "node/admission/random_text.h"
#include "node/anew_store.h"

namespace gossamer::node {
namespace {

constexpr std::int64_t kTokenSeconds = std::int64_t{24} * 3600;
constexpr Duration kStandbyAfter{2'000'000'000};  // a coordinator that leads at all does so before

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// URL,... of etcd's members, and among them ca=FILE and login=FILE.
Result<host::EtcdOptions> etcd_options(host::Disk& disk, const std::string& text) {
  constexpr std::string_view kCa = "ca=";
  constexpr std::string_view kLogin = "login=";
  constexpr std::size_t kMostBytes = 4096;
  host::EtcdOptions options;
  for (const std::string& part : split(text)) {
    if (part.starts_with(kCa)) {
      options.access.ca_file = part.substr(kCa.size());
      // The library would say only that there is no connection.
      if (const auto there = disk.file_size(options.access.ca_file); !there.ok()) return there.error();
    } else if (part.starts_with(kLogin)) {
      const std::string path = part.substr(kLogin.size());
      const auto login = host::read_text(disk, path, kMostBytes);
      if (!login.ok()) return login.error();
      if (auto read = host::read_login(*login, options.access); !read.ok()) {
        Error error = read.error();
        error.where = path;
        return error;
      }
    } else {
      options.urls.push_back(part);
    }
  }
  return options;
}

membership::Address address_message(const host::Endpoint& at) {
  membership::Address address;
  address.set_host(at.host);
  address.set_port(at.port);
  return address;
}

// Refuses a directory with other files. A run's files among them could be lost with them.
Result<void> expect_empty(host::Disk& disk, const std::string& directory) {
  const auto names = disk.list(directory);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    // The lock, and what a failed attempt has left.
    if (name == ".lock" || name == "credentials" || name.starts_with("lead.toml")) continue;
    return Error{.kind = ErrorKind::kUsage,
                 .where = directory,
                 .what = "the directory is not empty, and holds no run of a cluster",
                 .got = name,
                 .expected = "a directory that is missing or empty",
                 .fix = "give --out another directory"};
  }
  return {};
}

}  // namespace

CoordinatorNode::CoordinatorNode(const run::NodeHost& host, CoordinatorOptions options,
                                 cluster::Workload& workload)
    : host_(host),
      options_(std::move(options)),
      workload_(workload),
      tokens_(host.disk, options_.directory + "/tokens"),
      log_(host, options_.directory, options_.report.log),
      loop_(host.clock),
      started_(loop_.now()),
      started_wall_(host.clock.wall_seconds()) {}

CoordinatorNode::~CoordinatorNode() {
  companion_.reset();
  store_.reset();
  network_.reset();
}

Result<std::unique_ptr<CoordinatorNode>> CoordinatorNode::start(const run::NodeHost& host,
                                                                CoordinatorOptions options,
                                                                cluster::Workload& workload) {
  std::unique_ptr<CoordinatorNode> node(new CoordinatorNode(host, std::move(options), workload));
  if (auto prepared = node->prepare(); !prepared.ok()) return prepared.error();
  if (auto listens = node->listen(); !listens.ok()) {
    // No node has heard of this run yet, and the user may try again in the same directory.
    const std::string& directory = node->options_.directory;
    for (const std::string& made :
         {credentials_directory(directory), directory + "/address.json", run::lead_file_path(directory)}) {
      if (node->new_run_) static_cast<void>(host.disk.remove_all(made));
    }
    return listens.error();
  }
  return node;
}

Result<RunAddress> chosen_address(host::Disk& disk, const CoordinatorOptions& options) {
  RunAddress own;
  std::string name = options.advertise;
  if (options.listen) {
    const auto bulk = bulk_endpoint(*options.listen);
    if (!bulk.ok()) return bulk.error();
    own.control = options.listen;
    own.bulk = *bulk;
  } else {
    const auto before = load_address(disk, options.directory);
    if (!before.ok() || !(*before).control || !(*before).bulk) {
      return Error{.kind = ErrorKind::kUsage,
                   .where = "--listen",
                   .what = "where to listen is not known",
                   .got = "no address of an earlier start in " + options.directory,
                   .expected = "HOST:PORT",
                   .fix = "add --listen HOST:PORT"};
    }
    own.control = (*before).control;
    own.bulk = (*before).bulk;
    if (name.empty()) name = (*before).coordinator.host;
  }
  const host::Endpoint& control = *own.control;
  if (is_wildcard(control.host) && name.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--listen",
                 .what = "others cannot reach this address",
                 .got = host::to_string(control),
                 .expected = "an address or name of this machine",
                 .fix = "add --advertise NAME, how nodes reach this machine"};
  }
  own.coordinator.host = name.empty() ? control.host : name;
  own.others = options.standbys;
  return own;
}

Result<void> CoordinatorNode::prepare() {
  const std::string& directory = options_.directory;
  auto chosen = chosen_address(host_.disk, options_);
  if (!chosen.ok()) return chosen.error();
  own_ = *std::move(chosen);
  const auto known = has_membership(host_.disk, directory);
  if (!known.ok()) return known.error();
  if (*known && !options_.resume) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = directory,
                 .what = "the directory holds a run",
                 .fix = "use --resume to lead it again, or another directory"};
  }
  auto own = take_directory(host_.disk, directory);
  if (!own.ok()) return own.error();
  if (!*known) {
    if (auto empty = expect_empty(host_.disk, directory); !empty.ok()) return empty;
    // Credentials make it a run, and --resume then needs the file.
    if (auto kept = run::keep_lead_file(host_.disk, directory, options_.file); !kept.ok()) return kept;
  }
  lock_ = std::move((*own).lock);
  const double now = host_.clock.wall_seconds();
  auto credentials = *known
                         ? load_run_credentials(host_.disk, directory, now)
                         : create_run_credentials(host_.disk, directory, to_hex(random_bytes(8)), validity());
  if (!credentials.ok()) return credentials.error();
  new_run_ = !*known;
  const auto before = load_address(host_.disk, directory);
  own_.led = before.ok() && before->led;
  static_cast<RunCredentials&>(credentials_) = *std::move(credentials);
  credentials_.renewal = Renewal(credentials_.own.credentials.certificate);
  log_.name(credentials_.own.run, cluster::kCoordinatorNode);
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
    auto options = etcd_options(host_.disk, text.substr(5));
    if (!options.ok()) return options.error();
    options->run = credentials_.own.run;
    auto store = host::EtcdStore::create(*options);
    if (!store.ok()) return store.error();
    return std::unique_ptr<host::Store>(std::move(*store));
  }
  return Error{.kind = ErrorKind::kUsage,
               .where = "--store",
               .what = "unknown store",
               .got = text,
               .expected = "sqlite:FILE or etcd:URL,...[,ca=FILE][,login=FILE]",
               .fix = "leave it out to keep a file in the run directory"};
}

cluster::CoordinatorProcess::Options CoordinatorNode::process_options() const {
  const host::Endpoint& at = own_.coordinator;
  cluster::CoordinatorProcess::Options process;
  process.coordinator.run = credentials_.own.run;
  process.coordinator.configuration = options_.configuration;
  process.coordinator.listening = cluster::listening_of(
      {.node = cluster::kCoordinatorNode, .control = at, .bulk = {at.host, own_.bulk->port}});
  process.coordinator.coordinators.push_back(address_message(at));
  for (const host::Endpoint& other : options_.standbys)
    process.coordinator.coordinators.push_back(address_message(other));
  process.coordinator.first_members = options_.first_members;
  process.coordinator.waits_for = options_.waits_for;
  process.coordinator.tracks = options_.tracks;
  process.coordinator.machine = host::network_stack();
  process.candidate = {.name = at.host, .address = host::to_string(at)};
  process.program = options_.program;
  process.seed = random_seed();
  return process;
}

Result<void> CoordinatorNode::listen() {
  auto opened = open_store();
  if (!opened.ok()) return opened.error();
  std::unique_ptr<host::Store> store = *std::move(opened);
  if (options_.anew) {
    const AnewStore::Begin begin{.step = *options_.anew, .tracks = options_.tracks.size()};
    store = std::make_unique<AnewStore>(std::move(store), begin);
  }
  own_.shared = store->lead_time().has_value();
  network_ = host::make_grpc_network(credentials_.own.credentials, [this](host::NetworkEvent event) {
    const host::EventSource source = host::source_of(event);
    loop_.post(source, [this, event = std::move(event)]() mutable { on_network(std::move(event)); });
  });
  const auto control = network_->listen(*own_.control, host::Lane::kControl);
  if (!control.ok()) return control.error();
  const auto bulk = network_->listen(*own_.bulk, host::Lane::kBulk);
  if (!bulk.ok()) return bulk.error();
  own_.control->port = (*control).port;
  own_.bulk->port = (*bulk).port;
  own_.coordinator.port = (*control).port;
  if (options_.report.metrics) {
    auto metrics = MetricsEndpoint::listen(*options_.report.metrics);
    if (!metrics.ok()) return metrics.error();
    metrics_ = std::move(*metrics);
    remark(LogLevel::kInfo, fmt::format("metrics at http://{}/metrics", host::to_string(metrics_->at())));
  }
  if (auto done = keep_address(host_.disk, options_.directory, own_); !done.ok()) return done;
  if (auto noted = note_coordinator(host_.disk, options_.state, own_.coordinator.port, options_.directory);
      !noted.ok()) {
    remark(LogLevel::kWarning,
           fmt::format("'status' and 'stop' will need this run's directory: {}", noted.error().message()));
  }
  if (!new_run_) {
    if (auto kept = run::keep_lead_file(host_.disk, options_.directory, options_.file); !kept.ok())
      return kept;
  }
  cluster::CoordinatorProcess::Options process = process_options();
  process.keep_every = store->keep_every();
  process.lead_time = store->lead_time();
  process.certificates = true;
  process.led_before = own_.led;
  process.watch_links = [this](const net::LinkEvent& event) { log_.link(event, epoch()); };
  if (options_.make_companion)
    process.others = [this](net::Arrived arrived) { companion_->on(std::move(arrived)); };
  process_ =
      std::make_unique<cluster::CoordinatorProcess>(std::move(process), *network_, workload_, loop_.now());
  if (options_.make_companion)
    companion_ = std::make_unique<Accompanied>(loop_, *process_, options_.make_companion);
  store_ = std::make_unique<StoreThread>(std::move(store), [this](cluster::StoreAnswer answer) {
    loop_.post({}, [this, answer = std::move(answer)]() mutable {
      note_store(answer);
      process_->answered(std::move(answer), loop_.now());
    });
  });
  return {};
}

Result<std::string> CoordinatorNode::new_token(const std::string& note) {
  return make_token(host_, options_.directory,
                    {.at = own_.coordinator, .seconds = kTokenSeconds, .note = note});
}

void CoordinatorNode::on_network(host::NetworkEvent event) {
  if (const auto* const asked = std::get_if<host::Asked>(&event)) return on_asked(*asked);
  process_->on(std::move(event), loop_.now());
}

Epoch CoordinatorNode::epoch() const {
  const bool leads = process_ != nullptr && process_->coordinator() != nullptr;
  return leads ? process_->coordinator()->view().epoch() : Epoch();
}

void CoordinatorNode::log(const std::string& kind, net::PeerId peer, const std::string& text) {
  log_.event({.kind = kind, .peer = peer, .epoch = epoch(), .text = text});
}

void CoordinatorNode::remark(LogLevel level, const std::string& text) { log_.remark(level, epoch(), text); }

// Logs when the store fails and when it works again. Members go on while the store fails, and it would be a
// riddle why nothing new is agreed.
void CoordinatorNode::note_store(const cluster::StoreAnswer& answer) {
  const std::optional<Error> error = std::visit(
      [](const auto& one) { return one.ok() ? std::optional<Error>() : std::optional(one.error()); }, answer);
  const net::PeerId self{cluster::kCoordinatorNode, {}};
  if (error && error->kind != ErrorKind::kRefused) {
    if (!store_fails_) {
      log("store_error", self, error->message());
    }
    store_fails_ = {call_, error->message()};
  } else if (store_fails_ && store_fails_->first == call_) {
    store_fails_.reset();
    log("store_works", self, "");
  }
}

void CoordinatorNode::tell_events() {
  cluster::Coordinator* const coordinator = process_->coordinator();
  const net::PeerId self{cluster::kCoordinatorNode, {}};
  if (coordinator == nullptr) {
    if (led_ || (!stood_by_ && loop_.now() - started_ > kStandbyAfter)) {
      log("stands_by", self, "another coordinator leads, or the store does not answer");
      stood_by_ = true;
    }
    led_ = false;
    return;
  }
  share_tokens_once();
  if (!led_) {
    led_ = stood_by_ = true;
    if (!std::exchange(own_.led, true)) {
      if (const auto kept = keep_address(host_.disk, options_.directory, own_); !kept.ok())
        remark(LogLevel::kWarning, kept.error().message());
    }
    log("leads", self, fmt::format("generation {}", process_->generation().value));
  }
  end_.ending = coordinator->ending();
  for (const cluster::RunEvent& event : coordinator->take_events()) {
    end_.told = end_.told || event.kind == "stopping";
    log_.event(event);
  }
  if (coordinator->marks()) rate_.saw(coordinator->marks()->committed(), loop_.now());
}

void CoordinatorNode::show_metrics() {
  const MetricsOwner owner{.run = credentials_.own.run,
                           .program = options_.program,
                           .node = cluster::kCoordinatorNode,
                           .started = started_wall_,
                           .events = &log_.counts()};
  metrics_->show(coordinator_metrics(owner, *process_, store_fails_.has_value()), loop_.now());
}

// A failure is no reason to stop: the certificate holds for about as long again, and the next attempt
// follows.
void CoordinatorNode::renew_own_in_time() {
  const double now = host_.clock.wall_seconds();
  const auto kept = credentials_.unkept.keep(host_.disk, options_.directory, credentials_.own, loop_.now());
  if (!kept.ok()) remark(LogLevel::kWarning, kept.error().message());
  if (!credentials_.renewal.due(now)) return;
  credentials_.renewal.attempt(now);
  auto renewed = renew_own(credentials_, validity());
  if (!renewed.ok()) return remark(LogLevel::kWarning, renewed.error().message());
  const auto shown = network_->renew(renewed->credentials);
  if (!shown.ok()) return remark(LogLevel::kWarning, shown.error().message());
  credentials_.own = *std::move(renewed);
  credentials_.renewal = Renewal(credentials_.own.credentials.certificate);
  credentials_.unkept.renewed(loop_.now());
  log("renewed", {cluster::kCoordinatorNode, {}}, "its own certificate");
}

std::optional<Instant> CoordinatorNode::work() {
  process_->tick(loop_.now());
  renew_own_in_time();
  answer_early_questions();
  if (auto call = process_->next_call(loop_.now())) {
    call_ = call->index();
    store_->call(std::move(*call));
  }
  tell_events();
  std::optional<Instant> wake = process_->next_wakeup();
  wake = sooner(wake, loop_.now() + credentials_.renewal.look_again_in(host_.clock.wall_seconds()));
  if (companion_ != nullptr) {
    wake = sooner(wake, companion_->tick());
    for (const std::string& text : companion_->take_remarks()) remark(LogLevel::kWarning, text);
  }
  if (metrics_ == nullptr) return wake;
  if (metrics_->due() <= loop_.now()) show_metrics();
  return sooner(wake, metrics_->due());
}

bool CoordinatorNode::ended() const {
  return process_->coordinator() != nullptr && process_->coordinator()->stopped();
}

bool CoordinatorNode::begun() const {
  const cluster::Coordinator* const coordinator = process_->coordinator();
  return coordinator == nullptr || coordinator->installed() != Epoch();
}

bool CoordinatorNode::emptied() const {
  const cluster::Coordinator* const coordinator = process_->coordinator();
  return coordinator != nullptr && coordinator->installed() != Epoch() &&
         coordinator->view().members().empty();
}

Result<void> CoordinatorNode::run(const std::function<bool()>& stop) {
  loop_.run([this] { return work(); }, [&] { return stop() || process_->failure().has_value() || ended(); });
  if (process_->failure()) return *process_->failure();
  if (ended() && process_->coordinator()->failure()) return *process_->coordinator()->failure();
  if (ended()) remark(LogLevel::kInfo, "the run has ended: all members have left");
  if (log_.first_error()) remark(LogLevel::kWarning, "events were lost: " + log_.first_error()->message());
  return {};
}

}  // namespace gossamer::node
