// SPDX-License-Identifier: Apache-2.0
//
// ReportJournal: the file in which a coordinator keeps the reports of its members
// (docs/protocols/reports.md). It is a row of frames:
//
//   bytes of the body, u32 | the low half of its Digest, u32 | body: wire.JournalBatch
//
// The file has at most kMostBytes. Then its older half goes.
//
// Numbers are little-endian. What is written survives the process. It survives a loss of power once
// sync_work() was done. A frame that is not whole ends the file: it is cut off when the journal is opened.
//
// Thread rule: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "host/api/disk.h"
#include "node/reports/report_batch.h"

namespace gossamer::node {

class ReportJournal {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

  // The disk outlives the journal. The directory of the file is there. `most_bytes` counts without the last
  // frame.
  ReportJournal(host::Disk& disk, std::string path, std::uint64_t most_bytes = kMostBytes)
      : disk_(disk), path_(std::move(path)), most_bytes_(most_bytes), shorten_at_(most_bytes) {}

  using Take = std::function<void(ReportBatch)>;
  // Gives all batches in their order. Returns the bytes that were cut off behind them.
  [[nodiscard]] Result<std::uint64_t> open(const Take& take);
  // Gives all batches once more.
  [[nodiscard]] Result<void> read_again(const Take& take) const;
  // Requires an open journal. A batch that could not be written may be there later, and once more when it is
  // appended again.
  [[nodiscard]] Result<void> append(const ReportBatch& batch);
  // Work after which all that is written by now survives a loss of power; empty where it does already. Any
  // thread may do it, beside appends. The disk outlives it.
  [[nodiscard]] std::function<Result<void>()> sync_work();
  // That work has failed: there is some again.
  void not_synced() { unsynced_ = true; }

 private:
  [[nodiscard]] Result<void> write_rest();
  void shorten();

  host::Disk& disk_;
  const std::string path_;
  const std::uint64_t most_bytes_;
  std::uint64_t shorten_at_;                  // more, after an attempt that failed
  std::uint64_t bytes_ = 0;                   // that are known to be there
  std::string rest_;                          // of the last frame, behind them
  bool unsynced_ = false;                     // some of them may not survive a loss of power
  std::unique_ptr<host::WritableFile> file_;  // null before the first write, and after one that failed
};

}  // namespace gossamer::node
