// SPDX-License-Identifier: Apache-2.0
//
// CoordinatorNode: `gossamer coordinator`. A CoordinatorProcess on the real machine: its directory with
// credentials, tokens and store, the network, the store's thread, the questions of strangers and users
// (docs/protocols/admission.md), events.jsonl.
//
// Thread rule: everything on the loop thread, which is the caller's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/admission/token_book.h"
#include "cluster/control/coordinator_process.h"
#include "cluster/control/workload.h"
#include "node/cluster/companion.h"
#include "node/cluster/credentials.h"
#include "node/cluster/event_loop.h"
#include "node/cluster/metrics_endpoint.h"
#include "node/cluster/node_log.h"
#include "node/cluster/step_rate.h"
#include "node/cluster/store_thread.h"
#include "node/node_host.h"

namespace gossamer::node {

// Of all certificates of a run.
inline constexpr int kCertificateDays = 3650;

struct CoordinatorOptions {
  std::string directory;  // absolute
  std::string state;      // of this machine (places.h)
  bool resume = false;
  // The control lane; bulk is the next port, or a free one for port 0. Without it, where it listened before.
  std::optional<host::Endpoint> listen;
  std::string advertise = {};                 // how nodes reach this machine; empty: listen.host
  std::string store = {};                     // sqlite:FILE or etcd:URL,...; empty: a file in the directory
  std::vector<host::Endpoint> standbys = {};  // other coordinators of the run
  std::size_t first_members = 1;
  std::string configuration;  // for the members' engines
  std::string run_toml = {};  // the same for people, kept in the directory
  std::vector<cluster::TrackId> tracks = {};
  std::string program;
  ReportOptions report;
  MakeCompanion make_companion = {};  // may be empty
};

class CoordinatorNode {
 public:
  // kUsage for a directory that holds something else, or a run without `resume`; otherwise the error of what
  // failed. A new directory is then as it was. `workload` outlives the node.
  [[nodiscard]] static Result<std::unique_ptr<CoordinatorNode>> start(const NodeHost& host,
                                                                      CoordinatorOptions options,
                                                                      cluster::Workload& workload);
  ~CoordinatorNode();

  // Where it listens for control, as others reach it.
  [[nodiscard]] const host::Endpoint& address() const { return address_; }
  // It was not there before.
  [[nodiscard]] bool new_run() const { return new_run_; }
  // A token of this run, good for a day.
  [[nodiscard]] Result<std::string> new_token(const std::string& note);

  // Until `stop`, which is asked again and again, or the run's end. Members are not asked to leave by the
  // first: they wait for a coordinator that comes back.
  [[nodiscard]] Result<void> run(const std::function<bool()>& stop);
  // All members have left it for good, whatever the reason: nobody leads this run again.
  [[nodiscard]] bool ended() const;
  // Members are told to leave, and some have not yet.
  [[nodiscard]] bool stopping() const { return stopping_ && !ended(); }

 private:
  CoordinatorNode(const NodeHost& host, CoordinatorOptions options, cluster::Workload& workload);

  [[nodiscard]] Result<void> choose_addresses();
  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<std::unique_ptr<host::Store>> open_store() const;
  [[nodiscard]] Result<void> listen();
  void show_metrics();
  [[nodiscard]] cluster::CoordinatorProcess::Options process_options() const;
  void on_network(host::NetworkEvent event);
  [[nodiscard]] Result<void> keep_own_address();
  void ask_again_later(const host::Asked& asked);
  void answer_early_questions();
  void on_asked(const host::Asked& asked);
  void on_standby(const host::Asked& asked);
  void on_enroll(const host::Asked& asked);
  void on_status(const host::Asked& asked);
  void on_stop(const host::Asked& asked);
  void on_tokens(const host::Asked& asked);
  void share_tokens_once();
  [[nodiscard]] Result<void> may_see(const host::Asked& asked);
  std::optional<Instant> work();
  void tell_events();
  void note_store(const cluster::StoreAnswer& answer);
  [[nodiscard]] Epoch epoch() const;
  void log(const std::string& kind, net::PeerId peer, const std::string& text);
  void remark(LogLevel level, const std::string& text);
  void log_refusal(const host::Asked& asked, const Error& why);

  const NodeHost host_;
  const CoordinatorOptions options_;
  cluster::Workload& workload_;
  RunCredentials credentials_;
  cluster::TokenBook tokens_;
  NodeLog log_;
  EventLoop loop_;
  std::vector<host::Asked> early_;  // questions that came before it was known who leads
  std::size_t early_bytes_ = 0;
  StepRate rate_;
  host::Endpoint control_;
  host::Endpoint bulk_;
  host::Endpoint address_;
  bool new_run_ = false;
  bool led_before_ = false;  // from this directory, now or in an earlier life
  bool led_ = false;
  bool stood_by_ = false;
  bool stopping_ = false;
  bool shared_ = false;                     // the store, with other coordinators
  std::optional<Generation> tokens_taken_;  // from it, in that lead
  Instant started_;
  double started_wall_;  // seconds since 1970-01-01 UTC
  // The store's call under way, as its place in StoreCall, and the last one that failed and why.
  std::size_t call_ = 0;
  std::optional<std::pair<std::size_t, std::string>> store_fails_;
  // Strangers could fill the disk.
  Instant next_refusal_;
  std::uint64_t silent_refusals_ = 0;
  std::unique_ptr<host::DirectoryLock> lock_;
  std::unique_ptr<cluster::CoordinatorProcess> process_;
  std::unique_ptr<MetricsEndpoint> metrics_;
  // Their threads post to the loop: they end first.
  std::unique_ptr<Accompanied> companion_;
  std::unique_ptr<StoreThread> store_;
  std::unique_ptr<host::Network> network_;
};

}  // namespace gossamer::node
