// SPDX-License-Identifier: Apache-2.0
//
// SqliteStore: the Store of one machine, in one SQLite file on a local disk (docs/protocols/store.md).
//
// - Lead: an exclusive lock on the file PATH.lock, held for life. So a second process learns at once that
//   there is a leader, and the kernel frees the lead of a killed one at once. Silence never costs the lead:
//   keep() only checks that the file is in its place and has this handle's generation.
// - Guard: every commit compares the generation in its transaction. So it is refused even where the lock
//   failed, because somebody removed PATH.lock.
// - Durability: write-ahead log with full sync, one fdatasync a commit. PATH-wal and PATH-shm belong to the
//   file: move all three or none, and only while nobody leads.
//
// A file of another program or of a newer version is refused (kRefused), a damaged one is kBadData.
// Thread rule: as for Store.
#pragma once

#include <optional>
#include <string>

#include "host/api/store.h"
#include "host/posix/sqlite_database.h"
#include "host/system/descriptor.h"

namespace gossamer::host {

class SqliteStore final : public Store {
 public:
  // Touches nothing. The first campaign makes the file; its directory must be there.
  explicit SqliteStore(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] Result<std::optional<Generation>> campaign(const Candidate& self) override;
  [[nodiscard]] Result<void> keep() override;
  [[nodiscard]] Duration keep_every() const override { return from_seconds(1); }
  [[nodiscard]] std::optional<Duration> lead_time() const override { return std::nullopt; }
  [[nodiscard]] Result<void> resign() override;
  [[nodiscard]] Result<std::optional<LeaderRecord>> leader() override;
  [[nodiscard]] Result<std::vector<Entry>> load() override;
  [[nodiscard]] Result<void> commit(std::span<const Change> changes) override;

 private:
  [[nodiscard]] std::string lock_path() const { return path_ + ".lock"; }
  // nullopt when another process holds it.
  [[nodiscard]] Result<std::optional<Descriptor>> take_lock() const;
  // kRefused unless this handle led so far, kFailed if the file is not where it was.
  [[nodiscard]] Result<void> check_lead() const;
  // kRefused, and the lead is lost, if the file has another generation.
  [[nodiscard]] Result<void> check_generation();
  [[nodiscard]] Result<void> write(std::span<const Change> changes);
  void step_down();

  std::string path_;
  Generation generation_;
  // Both are set while this handle leads. The lock goes after the database.
  std::optional<Descriptor> lock_;
  std::optional<SqliteDatabase> database_;
};

}  // namespace gossamer::host
