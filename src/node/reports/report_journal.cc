// SPDX-License-Identifier: Apache-2.0
#include "node/reports/report_journal.h"

#include <gossamer/reports.pb.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/digest.h"
#include "host/api/files.h"

namespace gossamer::node {
namespace {

struct Head {
  std::uint32_t bytes = 0;
  std::uint32_t check = 0;
};
static_assert(sizeof(Head) == 8);

std::uint32_t check_of(std::span<const std::byte> body) {
  Digest digest;
  digest.add(body);
  return static_cast<std::uint32_t>(digest.value());
}

std::string frame_of(const ReportBatch& batch) {
  wire::JournalBatch body;
  body.set_node(batch.node.value);
  body.set_life(batch.life.value);
  body.set_first(batch.first);
  for (const std::string& report : batch.reports) body.add_reports(report);
  std::string frame(sizeof(Head), '\0');
  frame += body.SerializeAsString();
  const Head head{.bytes = static_cast<std::uint32_t>(frame.size() - sizeof(Head)),
                  .check = check_of(std::as_bytes(std::span(frame).subspan(sizeof(Head))))};
  std::memcpy(frame.data(), &head, sizeof(head));
  return frame;
}

// Takes the first frame off `bytes`. Nothing, and `bytes` as before, where no whole frame begins.
std::optional<ReportBatch> take_frame(std::span<const std::byte>& bytes) {
  Head head;
  if (bytes.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof(head));
  const auto behind = bytes.subspan(sizeof(head));
  if (head.bytes > behind.size()) return std::nullopt;
  const auto body = behind.first(head.bytes);
  wire::JournalBatch told;
  if (check_of(body) != head.check || !told.ParseFromArray(body.data(), static_cast<int>(body.size())))
    return std::nullopt;
  bytes = behind.subspan(head.bytes);
  ReportBatch batch{
      .node = NodeId(told.node()), .life = Incarnation(told.life()), .first = told.first(), .reports = {}};
  for (std::string& report : *told.mutable_reports()) batch.reports.push_back(std::move(report));
  return batch;
}

}  // namespace

Result<std::uint64_t> ReportJournal::open(const Take& take) {
  const auto there = disk_.exists(path_);
  if (!there.ok()) return there.error();
  if (!*there) return std::uint64_t{0};
  const auto mapped = disk_.map(path_);
  if (!mapped.ok()) return mapped.error();
  const std::span<const std::byte> all = (*mapped)->bytes();
  std::span<const std::byte> left = all;
  while (auto batch = take_frame(left)) take(*std::move(batch));
  bytes_ = all.size() - left.size();
  if (!left.empty()) {
    if (auto cut = host::replace_file(disk_, path_, all.first(bytes_)); !cut.ok()) return cut.error();
  }
  return static_cast<std::uint64_t>(left.size());
}

Result<void> ReportJournal::read_again(const Take& take) const {
  if (bytes_ == 0) return {};
  const auto mapped = disk_.map(path_);
  if (!mapped.ok()) return mapped.error();
  std::span<const std::byte> left = (*mapped)->bytes();
  while (auto batch = take_frame(left)) take(*std::move(batch));
  return {};
}

// A frame that is there in part is completed first: it would end the file.
Result<void> ReportJournal::append(const ReportBatch& batch) {
  if (!rest_.empty()) {
    if (auto written = write_rest(); !written.ok()) return written;
  }
  if (bytes_ > shorten_at_) shorten();
  rest_ = frame_of(batch);
  return write_rest();
}

// A file of its own syncs the bytes that others have appended.
std::function<Result<void>()> ReportJournal::sync_work() {
  if (!std::exchange(unsynced_, false)) return {};
  return [&disk = disk_, path = path_]() -> Result<void> {
    auto file = disk.open_writable(path, host::WriteMode::kAppend);
    if (!file.ok()) return file.error();
    if (auto synced = (*file)->sync(); !synced.ok()) return synced;
    if (auto closed = (*file)->close(); !closed.ok()) return closed;
    return disk.sync_directory(path.substr(0, std::max<std::size_t>(1, path.rfind('/'))));
  };
}

// Leaves the newer half. If that fails, it is tried again after a while: the file is whole as it is.
void ReportJournal::shorten() {
  shorten_at_ = bytes_ + most_bytes_ / 16;
  const auto mapped = disk_.map(path_);
  if (!mapped.ok()) return;
  std::span<const std::byte> left = (*mapped)->bytes().first(bytes_);
  while (left.size() > most_bytes_ / 2 && take_frame(left)) {
  }
  if (auto kept = host::replace_file(disk_, path_, left); !kept.ok()) return;
  bytes_ = left.size();
  shorten_at_ = most_bytes_;
  file_.reset();
}

Result<void> ReportJournal::write_rest() {
  if (file_ == nullptr) {
    auto file = disk_.open_writable(path_, host::WriteMode::kAppend);
    if (!file.ok()) return file.error();
    const auto size = disk_.file_size(path_);
    if (!size.ok()) return size.error();
    // A write that failed may have written a part.
    const std::uint64_t part = std::min<std::uint64_t>(*size - std::min(*size, bytes_), rest_.size());
    bytes_ += part;
    rest_.erase(0, part);
    file_ = *std::move(file);
  }
  unsynced_ = true;
  if (auto written = file_->append(std::as_bytes(std::span(rest_))); !written.ok()) {
    file_.reset();
    return written;
  }
  bytes_ += rest_.size();
  rest_.clear();
  return {};
}

}  // namespace gossamer::node
