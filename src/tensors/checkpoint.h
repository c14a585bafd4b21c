// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints: the run's tensors and its next step in one checksummed file. A crash at any moment leaves
// every older file whole (docs/protocols/checkpoint.md). This code knows tensors as named bytes, not
// networks.
//
// Thread rule: the training loop's thread, between two steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::tensors {

enum class TensorUse {
  kResult,  // the result of training
  kToGoOn,  // needed only while steps are left, such as moments
};

// The memory of a tensor. Names are unique within a checkpoint.
struct NamedTensor {
  std::string name;
  std::span<std::byte> bytes;
  TensorUse use = TensorUse::kResult;
};

// The cost of a run in seconds, over all its processes up to the checkpoints that they continued from. Work
// that a crash threw away is not included.
struct RunCost {
  double load_seconds = 0;   // before the first step of each process
  double train_seconds = 0;  // wall time of the training loop
  double cpu_seconds = 0;    // user and system

  RunCost& operator+=(const RunCost& other) {
    load_seconds += other.load_seconds;
    train_seconds += other.train_seconds;
    cpu_seconds += other.cpu_seconds;
    return *this;
  }
};

struct CheckpointInfo {
  StepNumber next_step;
  std::string run_id;
  // Fingerprint of the keys that shape the result. A checkpoint of another fingerprint is refused.
  std::string config_fingerprint;
  int workers = 1;
  // No step is left, so the tensors of kToGoOn are left out.
  bool finished = false;
  RunCost cost = {};
  std::vector<double> losses = {};  // losses of the last steps, the oldest first
};

struct CheckpointCounters {
  std::uint64_t written = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;
  template <class Visitor>
  void describe(Visitor&& v) const {
    v("gossamer_checkpoint_written_total", "files", "Checkpoints written and made durable.", written);
    v("gossamer_checkpoint_bytes_total", "bytes", "Bytes of checkpoints written.", bytes);
    v("gossamer_checkpoint_failed_total", "files", "Checkpoints that could not be written.", failed);
  }
};

// Writes the file `path` durably, in place of an older one. Under its name it is complete or absent.
[[nodiscard]] Result<void> write_checkpoint(host::Disk& disk, const std::string& path,
                                            const CheckpointInfo& info, std::span<const NamedTensor> tensors);

// One file, open for reading. The error is kBadData for a damaged file, and for a damaged or missing section.
class CheckpointFile {
 public:
  [[nodiscard]] static Result<CheckpointFile> open(host::Disk& disk, const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const CheckpointInfo& info() const { return info_; }
  [[nodiscard]] std::vector<std::string> names() const;
  // The size of a section; nothing if there is none.
  [[nodiscard]] std::optional<std::uint64_t> size_of(const std::string& name) const;
  // The bytes of a section, whose checksum has been verified.
  [[nodiscard]] Result<std::span<const std::byte>> section(const std::string& name) const;

 private:
  struct Section {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::string xxh3;
  };
  CheckpointFile() = default;

  std::string path_;
  std::unique_ptr<host::MappedFile> file_;
  CheckpointInfo info_;
  std::map<std::string, Section> sections_;
};

// Writes `directory`/step-NNNNNNNNNNNN.ckpt durably. Of it and those of earlier steps it then keeps the
// newest `keep` (>= 1). Files of later steps stay: a resume has passed them over as damaged. The directory
// must exist. On an error the older checkpoints are untouched. For a finished run `tensors` are those of
// kResult alone.
[[nodiscard]] Result<void> save_checkpoint(host::Disk& disk, const std::string& directory,
                                           const CheckpointInfo& info, std::span<const NamedTensor> tensors,
                                           int keep);

// Fills `tensors` from the newest whole checkpoint and returns its info. Empty when the directory holds none,
// or does not exist. A damaged file is reported as event `checkpoint_damaged`, and the next older one is
// taken. It is an error when a file is whole but belongs to another configuration (kUsage), or the disk
// fails. Tensors are changed only on success. Those of kToGoOn stay as they are for the checkpoint of a
// finished run.
[[nodiscard]] Result<std::optional<CheckpointInfo>> load_newest_checkpoint(
    host::Disk& disk, const std::string& directory, std::string_view config_fingerprint,
    std::span<const NamedTensor> tensors, EventSink events);

// The info of the newest file in the directory that can be opened; empty when there is none.
[[nodiscard]] Result<std::optional<CheckpointInfo>> newest_checkpoint(host::Disk& disk,
                                                                      const std::string& directory);
// The error kUsage for a file that belongs to a run of another fingerprint.
[[nodiscard]] Error other_configuration(const CheckpointFile& file, std::string_view fingerprint);

// "step-000000000012.ckpt" for step 12.
[[nodiscard]] std::string checkpoint_name(StepNumber next_step);
// The step of a file with exactly such a name; nothing for any other, such as a user's copy.
[[nodiscard]] std::optional<StepNumber> read_checkpoint_name(std::string_view name);

// The bytes of a checkpoint of these tensors on disk, footer included, rounded up.
[[nodiscard]] std::uint64_t checkpoint_bytes(std::span<const NamedTensor> tensors);

}  // namespace gossamer::tensors
