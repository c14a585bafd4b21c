// SPDX-License-Identifier: Apache-2.0
//
// CoordinatorNode is `gossamer coordinator`: a CoordinatorProcess on the real machine. It has:
//
//   - a directory with credentials, tokens, store and events.jsonl
//   - the network
//   - the store's thread
//   - the answers to questions of strangers and users (docs/protocols/admission.md)
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
#include "node/accompanied.h"
#include "node/admission/credentials.h"
#include "node/admission/renewal.h"
#include "node/coordinator_options.h"
#include "node/event_loop.h"
#include "node/metrics_endpoint.h"
#include "node/node_log.h"
#include "node/places.h"
#include "node/questions.h"
#include "node/shared_tokens.h"
#include "node/step_rate.h"
#include "node/store_thread.h"
#include "run/lead_file.h"
#include "run/node_host.h"

namespace gossamer::node {

// Where a coordinator with these options would listen, and be reached. kUsage where that is not known. It
// changes nothing.
[[nodiscard]] Result<RunAddress> chosen_address(host::Disk& disk, const CoordinatorOptions& options);

class CoordinatorNode {
 public:
  // Starts to listen. kUsage for a directory that holds something else, or that holds a run
  // without `resume`. Any other error says what failed. A directory that was new is then as it
  // was. `workload` outlives the node.
  [[nodiscard]] static Result<std::unique_ptr<CoordinatorNode>> start(const run::NodeHost& host,
                                                                      CoordinatorOptions options,
                                                                      cluster::Workload& workload);
  ~CoordinatorNode();

  // The address of the control lane, as others reach it.
  [[nodiscard]] const host::Endpoint& address() const { return own_.coordinator; }
  // Whether the run was not there before.
  [[nodiscard]] bool new_run() const { return new_run_; }
  // Makes a token of this run that is good for a day.
  [[nodiscard]] Result<std::string> new_token(const std::string& note);

  // Leads until `stop`, which is asked again and again, or until the run's end. On `stop` members are not
  // asked to leave: they wait for a coordinator that comes back.
  [[nodiscard]] Result<void> run(const std::function<bool()>& stop);
  // Whether all members have left the run for good, whatever the reason. Nothing leads this run again.
  [[nodiscard]] bool ended() const;
  // Whether it leads. What its directory says of the run is in the store, too, from then on.
  [[nodiscard]] bool leads() const { return led_; }
  // Whether members hold, or held, something of this fleet. True while it is not known.
  [[nodiscard]] bool begun() const;
  // Whether members have worked, and none of them is left: what they held is in their checkpoints alone.
  [[nodiscard]] bool emptied() const;
  // Whether the run is told to end. Members may not know yet.
  // While nobody leads here, as at the last moment when it led: the store may be away for a while.
  [[nodiscard]] bool ending() const { return end_.ending; }
  // Whether members are told to leave, and some have not left yet.
  [[nodiscard]] bool stopping() const { return end_.told && !ended(); }

 private:
  CoordinatorNode(const run::NodeHost& host, CoordinatorOptions options, cluster::Workload& workload);

  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<std::unique_ptr<host::Store>> open_store() const;
  [[nodiscard]] Result<void> listen();
  void show_metrics();
  [[nodiscard]] cluster::CoordinatorProcess::Options process_options() const;
  void on_network(host::NetworkEvent event);
  void ask_again_later(const host::Asked& asked);
  void answer_early_questions();
  void on_asked(const host::Asked& asked);
  void on_standby(const host::Asked& asked);
  void on_enroll(const host::Asked& asked);
  void on_status(const host::Asked& asked);
  void on_stop(const host::Asked& asked);
  void on_tokens(const host::Asked& asked);
  void on_expel(const host::Asked& asked);
  [[nodiscard]] Result<NodeId> renewing_node(const host::Asked& asked) const;
  void on_renew(const host::Asked& asked);
  void renew_own_in_time();
  [[nodiscard]] host::Validity validity() const {
    return {.now_seconds = host_.clock.wall_seconds(), .days = 0, .seconds = options_.certificate_seconds};
  }
  [[nodiscard]] Result<std::vector<NodeId>> meant(const ExpelWish& wish) const;
  void share_tokens_once();
  [[nodiscard]] Result<void> knows_tokens() const;
  [[nodiscard]] Result<void> may_see(const host::Asked& asked);
  std::optional<Instant> work();
  void tell_events();
  void note_store(const cluster::StoreAnswer& answer);
  [[nodiscard]] Epoch epoch() const;
  void log(const std::string& kind, net::PeerId peer, const std::string& text);
  void remark(LogLevel level, const std::string& text);

  const run::NodeHost host_;
  const CoordinatorOptions options_;
  cluster::Workload& workload_;
  struct Own : RunCredentials {
    Renewal renewal;
    UnkeptMembership unkept;
    RenewalRate of_members;
  };
  Own credentials_;
  cluster::TokenBook tokens_;
  NodeLog log_;
  EventLoop loop_;
  std::vector<host::Asked> early_;  // questions from before it was known which coordinator leads
  StepRate rate_;
  RunAddress own_;  // where it listens, as its directory keeps it
  bool new_run_ = false;
  bool led_ = false;
  bool stood_by_ = false;
  struct End {
    bool ending = false;
    bool told = false;
  };
  End end_;  // of the run
  TokenShare token_share_;
  Instant started_;
  double started_wall_;  // seconds since 1970-01-01 UTC
  // The store's call under way, as its index in StoreCall, and the last one that failed with the reason.
  std::size_t call_ = 0;
  std::optional<std::pair<std::size_t, std::string>> store_fails_;
  std::shared_ptr<host::DirectoryLock> lock_;
  std::unique_ptr<cluster::CoordinatorProcess> process_;
  std::unique_ptr<MetricsEndpoint> metrics_;
  // Threads of these objects post to the loop, so they end first.
  std::unique_ptr<Accompanied> companion_;
  std::unique_ptr<StoreThread> store_;
  std::unique_ptr<host::RenewableNetwork> network_;
};

}  // namespace gossamer::node
