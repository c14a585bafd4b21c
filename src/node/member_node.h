// SPDX-License-Identifier: Apache-2.0
//
// MemberNode is `gossamer join`: a MemberProcess and its engine on the real machine. It has the credentials,
// from a token or from an earlier life, the network, and the loop.
//
// Thread rule: everything on the loop thread, which is the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/admission/token.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"
#include "host/posix/signals.h"
#include "node/admission/credentials.h"
#include "node/admission/renewal.h"
#include "node/aside_thread.h"
#include "node/event_loop.h"
#include "node/files/file_exchange.h"
#include "node/metrics_endpoint.h"
#include "node/node_log.h"
#include "node/places.h"
#include "node/report_options.h"
#include "node/work_thread.h"
#include "run/node_host.h"

namespace gossamer::node {

struct MemberOptions {
  host::Endpoint coordinator;
  std::optional<std::string> token;  // needed where the directory has no credentials yet
  OwnDirectory directory;            // has credentials, address.json, events.jsonl
  std::string name;                  // for people
  host::Endpoint listen;             // port 0 takes free ones
  // How other nodes reach this machine. Empty: they do not (NAT).
  std::string advertise;
  // Set where the user gave no address: `advertise` is then this machine's own address towards this endpoint.
  // The node looks at it again while it runs. `listen` has the same address, or is a wildcard.
  std::optional<host::Endpoint> towards;
  std::uint64_t memory_bytes = 0;
  std::uint32_t cores = 1;
  bool in_place = false;  // the engine may use files under paths that the coordinator names
  std::string program;
  ReportOptions report;
};

// What a member that was told to stop knows of the others.
struct LeavingMember {
  bool late = false;          // no other has taken its part over in the time that it gave them
  bool saves = false;         // it has begun to save its part
  bool in_view = false;       // the view that it knows has it
  bool nobody_leads = false;  // and that has lasted
  bool others = false;        // the view that it knows has members
  bool all_drain = false;     // every one of them
  bool at_rest = false;       // and nothing is installed: the coordinator waits for silent members
  bool brings = false;        // something of its files has come to the coordinator in that time
};
enum class Leaving { kWaits, kSaves, kLeaves };
// While steps are taken, others may have copies of its part, and a late member just leaves. In three cases no
// copy may take its place, and it saves its part first:
// - Nobody leads, and others may leave as well. It need not be late.
// - It is late, and all drain.
// - It is late, and all rest.
// Bytes that it brings keep it, once it has saved its part or given it away. Before that it does not stay for
// them. It takes steps and writes further files, and its next life brings what is left.
[[nodiscard]] Leaving leaving_now(const LeavingMember& member);

class MemberNode {
 public:
  // The engine gives Aside what must not hold up its Work.
  using MakeEngine =
      std::function<std::unique_ptr<cluster::Engine>(cluster::MemberProcess&, NodeId self, Aside)>;

  // Enrols if it must, and listens. kRefused when the token or certificate is not accepted. A node that
  // enrolled before starts even when no coordinator answers yet, and when its certificate has ended.
  [[nodiscard]] static Result<std::unique_ptr<MemberNode>> start(const run::NodeHost& host,
                                                                 MemberOptions options,
                                                                 const MakeEngine& make_engine);
  ~MemberNode();

  // Runs until the node has left: because the run ended, because a signal asked it to give its part away, or
  // because it was refused. A fenced node begins again.
  [[nodiscard]] Result<void> run(const host::PosixSignals& signals);
  // After run(): whether the run has begun anew from a checkpoint, with another configuration. What the
  // engine was made of is of no use then. Another node with the same options takes this one's place.
  [[nodiscard]] bool begins_anew() const { return begins_anew_; }

 private:
  MemberNode(const run::NodeHost& host, MemberOptions options);

  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> resume(const std::optional<cluster::Token>& token);
  [[nodiscard]] Result<void> return_with(const std::optional<cluster::Token>& token);
  [[nodiscard]] Result<void> enroll_anew(const std::optional<cluster::Token>& token, const Error& over);
  [[nodiscard]] std::vector<host::Endpoint> coordinators() const;
  [[nodiscard]] Result<void> is_of_run(const std::string& authority, const cluster::Token& token);
  void renew_in_time();
  [[nodiscard]] Result<void> ask_to_renew(const host::Endpoint& at);
  [[nodiscard]] Result<void> ask_to_return(const host::Endpoint& at);
  void on_renewed(const Result<std::string>& answer);
  [[nodiscard]] Result<void> take_renewed(const std::string& answer);
  [[nodiscard]] Result<void> enroll_with(const std::optional<cluster::Token>& token);
  [[nodiscard]] Result<void> listen(const MakeEngine& make_engine);
  [[nodiscard]] Result<membership::Listening> open_ports(const std::string& advertise);
  [[nodiscard]] membership::Listening where_now();
  void look_for_address(Instant now);
  void on_network(host::NetworkEvent event);
  void tell(const cluster::ProcessEvent& event);
  void tell(const cluster::MemberEvent& event);
  [[nodiscard]] Epoch epoch() const;
  void log(const std::string& kind, const std::string& text);
  void keep_coordinators(const std::vector<host::Endpoint>& coordinators);
  void leave_in_time(Instant now);
  void show_metrics();
  std::optional<Instant> work(const host::PosixSignals& signals);

  const run::NodeHost host_;
  const MemberOptions options_;
  Membership membership_;
  std::vector<host::Endpoint> others_;  // coordinators beside the one that the user named
  struct Ports {
    std::uint16_t control = 0;
    std::uint16_t bulk = 0;
  };
  std::map<std::string, Ports> ports_;  // by the address at which they are open
  std::string advertised_;              // address of the last life
  membership::Listening listening_;
  Instant next_look_;
  Incarnation incarnation_;                        // incarnation of the last life
  std::optional<std::string> configuration_ = {};  // of the first life
  bool begins_anew_ = false;
  NodeLog log_;
  EventLoop loop_;
  std::optional<Error> failure_;
  std::optional<Instant> drain_deadline_;
  bool saves_ = false;       // its part, as nobody takes it
  std::string why_not_yet_;  // why the last attempt to begin failed
  std::unique_ptr<cluster::MemberProcess> process_;
  std::unique_ptr<cluster::Engine> engine_;
  // These two do the engine's work, so they end before the engine.
  std::unique_ptr<WorkThread> worker_;
  std::unique_ptr<AsideThread> aside_;
  double started_;  // seconds since 1970-01-01 UTC
  std::unique_ptr<MetricsEndpoint> metrics_;
  // The networks' threads post to the loop, so they end first.
  std::unique_ptr<host::RenewableNetwork> network_;
  struct Renewing {
    Renewal when = {};
    UnkeptMembership unkept = {};
    std::optional<host::QuestionId> asked = {};  // while nobody has answered
    std::size_t coordinator = 0;                 // that is asked next
    // Asks instead of the node's own network once the certificate has ended.
    std::unique_ptr<host::Network> as_stranger = {};
    bool asked_as_stranger = false;
    std::string why_not_yet = {};  // why the last attempt failed
  };
  Renewing renewing_;
};

}  // namespace gossamer::node
