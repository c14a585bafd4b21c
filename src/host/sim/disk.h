// SPDX-License-Identifier: Apache-2.0
//
// SimDisk: files in memory with the promises of host/api/disk.h, and faults on demand. Every call of Disk, of
// SequentialFile and of WritableFile is one operation, numbered from 0, whether it succeeds or not. So a test
// can visit every crash point:
//
//   SimDisk rehearsal;
//   prepare(rehearsal);
//   rehearsal.restart_count({});
//   work(rehearsal);
//   for (std::uint64_t k = 0; k <= rehearsal.operations(); ++k) {
//     SimDisk disk;
//     prepare(disk);
//     disk.restart_count({.seed = seed, .crash_at_operation = k});
//     work(disk);  // k and everything after it fails
//     std::unique_ptr<SimDisk> later = disk.after_crash();
//     check(*later);
//   }
//
// The operation that crashes does nothing. A half-done operation is among the outcomes of a crash at the next
// one, because nothing unsynced survives reliably (file_tree.h says what may be left).
//
// The root directory is there from the start; paths with and without a leading '/' are the same. Files and
// locks must not outlive the disk. Deterministic for a seed and a sequence of calls.
// Thread rule: as for Disk (a mutex keeps calls apart).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/api/disk.h"
#include "host/sim/file_tree.h"

namespace gossamer::host {

struct SimDiskOptions {
  std::uint64_t seed = 1;  // decides what survives a crash and what a failing write leaves
  // The most bytes of all files together. A write that does not fit appends as much as fits, then fails.
  std::uint64_t capacity_bytes = std::uint64_t{1} << 50;
  // This operation and all later ones fail.
  std::optional<std::uint64_t> crash_at_operation = std::nullopt;
  // This operation alone fails. It does nothing, but a write leaves a part, as the seed says.
  std::optional<std::uint64_t> fail_at_operation = std::nullopt;
  TornTail torn_tail = TornTail::kCut;
};

class SimDisk final : public Disk {
 public:
  SimDisk() = default;
  explicit SimDisk(const SimDiskOptions& options) : options_(options) {}
  ~SimDisk() override;

  // Takes new options and counts from 0 again; files stay as they are.
  void restart_count(const SimDiskOptions& options);
  // Operations so far; the number of the next one.
  [[nodiscard]] std::uint64_t operations() const;
  // The disk as it may be found if the power failed now, without faults and locks. It may be called whether
  // or not a crash was asked for. The same seed and history give the same disk.
  [[nodiscard]] std::unique_ptr<SimDisk> after_crash() const;

  [[nodiscard]] Result<std::unique_ptr<SequentialFile>> open_sequential(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> open_writable(const std::string& path,
                                                                    WriteMode mode) override;
  // Copies the file.
  [[nodiscard]] Result<std::unique_ptr<MappedFile>> map(const std::string& path) override;
  [[nodiscard]] Result<bool> exists(const std::string& path) override;
  [[nodiscard]] Result<std::uint64_t> file_size(const std::string& path) override;
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& directory) override;
  [[nodiscard]] Result<void> make_directories(const std::string& directory) override;
  [[nodiscard]] Result<void> rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] Result<void> remove_all(const std::string& path) override;
  [[nodiscard]] Result<void> sync_directory(const std::string& directory) override;
  [[nodiscard]] Result<std::uint64_t> free_bytes(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<DirectoryLock>> lock(const std::string& directory) override;

 private:
  friend class SimSequentialFile;
  friend class SimWritableFile;
  friend class SimDirectoryLock;

  [[nodiscard]] const char* begin();  // counts; the fault of this operation, or null
  [[nodiscard]] Result<FileTree::Node> find_file(const std::string& path, const char* what) const;
  [[nodiscard]] Result<void> append(FileTree::Node file, const std::string& path,
                                    std::span<const std::byte> bytes);
  void unlock(FileTree::Node directory);

  mutable std::mutex mutex_;
  SimDiskOptions options_;
  FileTree tree_;
  std::set<FileTree::Node> locked_;
  std::uint64_t operations_ = 0;
};

}  // namespace gossamer::host
