// SPDX-License-Identifier: Apache-2.0
//
// Store: what the coordinator must not forget, and which process is the coordinator. One of the seams
// (docs/adr/0015-store-seam.md): host/posix keeps it in an SQLite file or in etcd, host/sim in memory with
// faults. Several processes may open the same store. At most one leads, and only the leader reads or writes
// the entries.
//
//   std::unique_ptr<Store> store = ...;
//   auto generation = store->campaign({.name = "coordinator-1", .address = "10.0.0.1:7070"});
//   if (generation.ok() && *generation) {                // else another leads: try again later
//     const auto entries = store->load();                // all that was committed before
//     while (store->commit(changes).ok()) answer();      // first durable, then answered
//   }
//
// Guard. Every commit is refused, inside the store's own transaction, unless this process still leads. A
// leader that was stopped, cut off or replaced can therefore change nothing, whatever it believes.
//
// Errors.
// - kRefused: this handle does not lead, or leads no more; it may campaign again.
// - kFailed: the world (disk full, nobody answers); `where` is the file or the addresses.
// - kBadData: the limits below, or a damaged store.
//
// A commit in doubt. After a kFailed commit the batch is in the store wholly or not at all, and nobody knows
// which: its answer may have been lost. The same holds for a kRefused commit that was sent more than once. A
// change says what the value is to be, not how to change it, so it can be made twice. The leader therefore
// commits the same changes once more (with others after them if it likes), or stops leading. Until then it
// answers nothing that rests on them.
//
// Keys and values are bytes; by convention keys are readable ("members/17"). They are strings, not spans of
// std::byte, because protobuf, SQLite and base64 take and give strings.
//
// Thread rule: one thread owns a handle. Every call but keep_every() and lead_time() blocks, for the time of
// a disk's sync or of the timeouts that the implementation was given. A destroyed handle falls silent like a
// killed process.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"

namespace gossamer::host {

// Limits of one commit, the same for all implementations.
inline constexpr std::size_t kMaxKeyBytes = 512;                       // at least 1
inline constexpr std::size_t kMaxValueBytes = std::size_t{1} << 20;    // may be empty
inline constexpr std::size_t kMaxChanges = 4096;                       // may be 0: the guard alone
inline constexpr std::size_t kMaxCommitBytes = std::size_t{16} << 20;  // keys and values together

// What a process tells others about itself when it leads. UTF-8.
struct Candidate {
  std::string name = {};
  std::string address = {};  // where nodes find it, HOST:PORT
};

struct LeaderRecord {
  Candidate candidate = {};
  Generation generation = {};
};

struct Entry {
  std::string key = {};
  std::string value = {};

  bool operator==(const Entry&) const = default;
};

struct Change {
  std::string key = {};
  std::optional<std::string> value = {};  // nullopt removes the key; fine if it is not there
};

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Tries to become the leader. The new generation is higher than any before and durable; nullopt when
  // another process leads (or was quicker). Returns at once: it never waits for another leader to go.
  // Requires that this handle does not lead.
  [[nodiscard]] virtual Result<std::optional<Generation>> campaign(const Candidate& self) = 0;
  // Says that the leader is alive. Call it every keep_every(); after a longer silence another process may
  // lead. kRefused once this handle leads no more. A kFailed call may be repeated at once.
  [[nodiscard]] virtual Result<void> keep() = 0;
  [[nodiscard]] virtual Duration keep_every() const = 0;
  // The silence after which another process may lead. nullopt where only the end of this process lets another
  // lead.
  [[nodiscard]] virtual std::optional<Duration> lead_time() const = 0;
  // Gives the lead up, so that a successor need not wait for silence. Fine for a handle that does not lead.
  // This handle does not lead after it, even if the store could not be told (kFailed).
  [[nodiscard]] virtual Result<void> resign() = 0;

  // The process that leads now, for standbys and redirects; nullopt when none does. Needs no lead. A hint: it
  // may be outdated when it arrives.
  [[nodiscard]] virtual Result<std::optional<LeaderRecord>> leader() = 0;

  // Everything committed, sorted by the bytes of the key. For the leader only.
  [[nodiscard]] virtual Result<std::vector<Entry>> load() = 0;
  // Carries out the changes in their order, all or none, durable before it returns.
  [[nodiscard]] virtual Result<void> commit(std::span<const Change> changes) = 0;
};

// For implementations: kBadData that names the first change beyond a limit.
[[nodiscard]] Result<void> check_limits(std::span<const Change> changes);
// kRefused: the handle of the store at `where` does not lead (any more).
[[nodiscard]] Error not_leading(const std::string& where);

}  // namespace gossamer::host
