// SPDX-License-Identifier: Apache-2.0
//
// MemberLinks: the links of a member to the other members. It opens links to the members of the view and to
// joining ones, directly or through the coordinator, and refuses fenced members. It keeps messages until
// there is a link. It knows which members are silent, and with which the link has ended.
//
// Thread rule: one owner, the member's.
#pragma once

#include <gossamer/membership.pb.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/control_probe.h"
#include "cluster/control/defect.h"
#include "cluster/control/view.h"
#include "cluster/membership/silences.h"
#include "net/link/links.h"

namespace gossamer::cluster {

class MemberLinks {
 public:
  struct Options {
    net::PeerId self;
    membership::Listening listening = {};  // as the coordinator was told with Begin
    std::string machine = {};
    Defect defect = Defect::kNone;
    ProbeCounts<ControlProbe>* probes = nullptr;
  };
  static constexpr Duration kUnreachableAfter{3'000'000'000};  // links are pinged every second
  static constexpr Duration kQuietAfter{2'000'000'000};        // enough for a Ping and its Pong
  static constexpr Duration kReopenAfter{500'000'000};         // doubling, up to:
  static constexpr Duration kReopenAtMost{10'000'000'000};
  static constexpr Duration kIntroducedIn{1'000'000'000};  // by the coordinator, if the other does not listen
  static constexpr Duration kRerouteEvery{1'000'000'000};
  // Messages wait so long for a bulk lane that is down, directly and through the coordinator, before the
  // other counts as out of reach. A router that begins again takes less (membership.md, "Lanes").
  static constexpr Duration kBulkPatience{120'000'000'000};
  // A lane that stays up for longer carries Pongs.
  static constexpr Duration kBulkStays{12'000'000'000};
  // The coordinator carries a link for so long before the direct way is tried again; doubling, up to:
  static constexpr Duration kRelayedFor{60'000'000'000};
  static constexpr Duration kRelayedAtMost{960'000'000'000};

  // `view`, the member's, and `links` outlive this.
  MemberLinks(Options options, const View& view, net::Links& links);
  MemberLinks(const MemberLinks&) = delete;
  MemberLinks& operator=(const MemberLinks&) = delete;

  // Events of links, the coordinator's among them.
  // False: the peer is fenced, and was refused.
  bool up(net::PeerId peer, Instant now);
  // A connection broke, or the link ended.
  void down(NodeId node, Instant now);
  void open_failed(NodeId node, Instant now);
  // Tries another way for each lane that is blocked, directly or through the coordinator. Looks once a
  // second, however often it is called.
  void reroute(Instant now);
  // The link with a member ended; down() came before. True: messages with a member of the view are lost.
  bool ended(net::PeerId peer, Instant now);

  // Ends the link with a peer that broke a rule. A peer outside the view is refused from now on. True: as
  // with ended().
  bool cut(net::PeerId peer, Instant now);
  // Ends the link with a peer, which may come again. As with ended().
  bool part(net::PeerId peer, const std::string& why, Instant now);

  // The view has changed, and all come to rest: losses so far are no news.
  void forget_losses();
  void view_changed(Instant now);
  // The coordinator told of a joining member.
  void expect(const membership::MemberRecord& record, Instant now);
  // The coordinator has fenced a joining member. It is refused from now on. False: the view has it.
  bool gone(net::PeerId peer, Instant now);
  // The coordinator is back. Links through it start anew: without it nobody could be reached through it,
  // which says nothing about these members.
  void relay_is_back(Instant now);
  // Opens the links that are missing and due.
  void connect(Instant now);

  // Both lanes to each other member of the view are up, directly or relayed.
  [[nodiscard]] bool reaches_all() const;
  // The members of the view that are out of reach. Nothing has come on their control lane for
  // kUnreachableAfter, or messages have waited for their bulk lane for kBulkPatience. Then members whose bulk
  // lane has been down for as long count, too, though nothing waits for it.
  [[nodiscard]] std::set<NodeId> out_of_reach(Instant now);
  // What has come from the other members of the view and what they have acknowledged, and of the
  // coordinator's link the bulk lane, in counted_bytes(). A link that is new begins with 0.
  [[nodiscard]] std::uint64_t moved_bytes() const;
  // The members with which a link has ended since forget_losses().
  [[nodiscard]] const std::set<NodeId>& lost() const { return lost_; }

  // The coordinator does not hear these members. Replaces those that it named before.
  void doubt(std::set<NodeId> nodes) { doubted_ = std::move(nodes); }
  // What this member knows of the doubted over a link of its own: that it hears them, or that the link is
  // down or quiet. Over links through the coordinator it knows no more than the coordinator.
  struct Word {
    std::vector<NodeId> hears = {};
    std::vector<NodeId> quiet = {};
  };
  [[nodiscard]] Word on_doubted(Instant now) const;

  // As Member::send().
  bool send(net::PeerId to, host::Lane lane, net::Message message, Instant now);

 private:
  // When to open a link again that ended or never came up.
  struct Reopening {
    Instant when;
    Duration wait = kReopenAfter;
  };
  // The way of a lane of a link that this member opened, if it was changed.
  struct Way {
    bool relayed = false;
    Instant since;
    Duration relayed_for = kRelayedFor;
  };
  // Messages that wait for a bulk lane.
  struct Waiting {
    Instant since;
    std::uint64_t acknowledged = 0;  // bytes, when they began to wait
  };

  void tell_known();
  void connect_to(const membership::MemberRecord& record, Instant now);
  void reroute(const membership::MemberRecord& record, host::Lane lane, Instant now);
  [[nodiscard]] std::set<NodeId> without_bulk(Instant now) const;
  [[nodiscard]] Instant left_behind(NodeId node, const Way& bulk, Instant now) const;
  void watch_bulk(Instant now);
  [[nodiscard]] bool is_up(NodeId node) const;
  [[nodiscard]] bool should_have_met(NodeId node, Instant now) const;
  void refuse_fenced(Instant now);
  void watch_peers(Instant now);
  [[nodiscard]] Instant last_sign(NodeId node, Instant now) const;
  void send_kept(net::PeerId to, Instant now);
  [[nodiscard]] bool serving() const { return view_.find(options_.self) != nullptr; }
  [[nodiscard]] bool guarded(Defect without) const { return options_.defect != without; }
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const Options options_;
  const membership::MemberRecord own_;  // where the member listens, and on which machine
  const View& view_;
  net::Links& links_;
  std::map<net::PeerId, std::vector<std::pair<host::Lane, net::Message>>> kept_;  // until there is a link
  std::map<NodeId, Instant> down_since_;                 // links to members that are not up
  std::set<NodeId> by_relay_;                            // peers whose links go through the coordinator
  std::map<NodeId, Incarnation> met_;                    // peers with a link now or before
  Silences silences_{kUnreachableAfter};                 // of the view's members
  std::set<NodeId> lost_;                                // said with each beat until the view changes
  std::map<NodeId, membership::MemberRecord> expected_;  // joining members
  std::map<NodeId, Reopening> reopening_;
  std::map<std::pair<NodeId, host::Lane>, Way> ways_;
  std::map<NodeId, Waiting> bulk_waits_;
  Instant next_reroute_ = {};
  std::set<NodeId> doubted_;
  std::set<NodeId> expelled_;  // of the view, refused already
};

}  // namespace gossamer::cluster
