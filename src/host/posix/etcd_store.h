// SPDX-License-Identifier: Apache-2.0
//
// EtcdStore: the Store of a coordinator with standbys on other machines, in etcd 3.4 or newer, over its JSON
// gateway. docs/protocols/store.md has keys, transactions and costs.
//
// - Lead: a key with a lease. keep() renews it. After `lease` of silence etcd removes the key, within half a
//   second more, and another process may lead.
// - Guard: every write is a transaction with two comparisons: the revision at which the leader's key was
//   made, and the number of writes under it. The second makes a repeated write harmless. A request whose
//   answer was lost is sent again, and counts once however often and however late it arrives.
// - A commit that is too large for one transaction of etcd goes into a redo log first. It is carried out from
//   there, by the next leader if need be. So it costs more round trips, and stays all or nothing. A call of
//   several round trips renews the lease between them.
//
// etcd keeps every old version until it compacts: run it with --auto-compaction-retention. A program that
// uses this ignores SIGPIPE. Plain HTTP only: the addresses belong to a private network or a tunnel.
//
// Thread rule: as for Store. A call blocks for at most the sum of the timeouts of all addresses (and the
// system's resolver, where they are names). A load or a large commit blocks for that much in each of its
// round trips. A leader that is blocked for longer than its lease has lost it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/api/store.h"
#include "host/posix/etcd_access.h"

namespace gossamer::host {

class EtcdClient;

struct EtcdOptions {
  std::vector<std::string> urls = {};  // https://HOST:PORT of etcd's members, or http:// of a loopback
  std::string run = {};                // run id: all keys are below gossamer/RUN/. Not empty, no '/'
  EtcdAccess access = {};              // needed for https
  Duration lease = from_seconds(2);    // whole seconds; etcd makes it 2 at least
  Duration connect_timeout = from_milliseconds(500);  // of one address
  Duration reply_timeout = from_seconds(1);           // of one read or write
};

class EtcdStore final : public Store {
 public:
  // Sends nothing. kUsage for options out of range.
  [[nodiscard]] static Result<std::unique_ptr<EtcdStore>> create(const EtcdOptions& options);
  ~EtcdStore() override;

  [[nodiscard]] Result<std::optional<Generation>> campaign(const Candidate& self) override;
  [[nodiscard]] Result<void> keep() override;
  [[nodiscard]] Duration keep_every() const override { return {options_.lease.ns / 4}; }
  [[nodiscard]] std::optional<Duration> lead_time() const override { return options_.lease; }
  [[nodiscard]] Result<void> resign() override;
  [[nodiscard]] Result<std::optional<LeaderRecord>> leader() override;
  [[nodiscard]] Result<std::vector<Entry>> load() override;
  [[nodiscard]] Result<void> commit(std::span<const Change> changes) override;

 private:
  struct Seat;  // what is known of the lead before a campaign
  using Changes = std::map<std::string, std::optional<std::string>>;

  EtcdStore(const EtcdOptions& options, std::unique_ptr<EtcdClient> client);

  [[nodiscard]] std::string key(std::string_view name) const;
  [[nodiscard]] std::string chunk_key(std::size_t at) const;
  // Takes the lead if it is still as `seat` says. True: this handle leads.
  [[nodiscard]] Result<bool> take(const Seat& seat, const Candidate& self);
  [[nodiscard]] Result<void> grant_lease();
  [[nodiscard]] Result<void> revoke_lease();

  // Carries out one transaction under the guard. Nothing is written in any other way.
  [[nodiscard]] Result<void> guarded(nlohmann::json operations);
  [[nodiscard]] Result<void> attempt(nlohmann::json operations);
  [[nodiscard]] Result<void> put_changes(const Changes& changes);

  // The redo log: redo/chunk/NNNNNN are pieces of a text, and redo/commit, written last, is its size. Until
  // redo/commit is there, nothing has happened.
  [[nodiscard]] Result<void> write_redo(const std::string& text);
  [[nodiscard]] Result<std::string> read_redo();  // empty: nothing was committed
  // Carries out the changes of a log that is whole, then empties it; both may be done twice.
  [[nodiscard]] Result<void> apply_redo(const Changes& changes);
  // Does what an earlier leader, or a commit that failed, has left in the redo log.
  [[nodiscard]] Result<void> finish_redo();

  EtcdOptions options_;
  std::unique_ptr<EtcdClient> client_;
  std::string lease_;  // etcd's number of the lease; empty: none
  bool leads_ = false;
  Generation generation_;
  std::uint64_t create_revision_ = 0;  // of the leader's key
  std::uint64_t version_ = 0;          // of the leader's key: writes under it so far
  bool in_doubt_ = false;              // a write of this version may have been, or may yet be, carried out
  bool redo_pending_ = false;          // the redo log may hold something
};

}  // namespace gossamer::host
