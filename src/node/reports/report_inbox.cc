// SPDX-License-Identifier: Apache-2.0
#include "node/reports/report_inbox.h"

#include <fmt/format.h>
#include <gossamer/reports.pb.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace gossamer::node {

// A node's reports of an earlier life are none: its process is gone.
Result<ReportBatch> ReportInbox::read(const net::Arrived& arrived) const {
  const auto refused = [&](std::string got) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = fmt::format("node {}", arrived.from.node.value),
                 .what = "it tells reports that cannot be",
                 .got = std::move(got),
                 .expected = "the next reports of this life",
                 .fix = "look whether it runs this version"};
  };
  constexpr std::size_t kMostBody = kMostBatch + 100;
  const std::string& bytes = arrived.message.body;
  wire::Reports body;
  if (bytes.size() > kMostBody || !body.ParseFromString(bytes) || body.kind() != wire::Reports::BATCH)
    return refused(fmt::format("{} bytes that are no batch", bytes.size()));
  const auto known = written_.find(arrived.from.node);
  const Incarnation life(body.life());
  const bool later = known == written_.end() || life >= known->second.life;
  if (!later || life > arrived.from.incarnation || life == Incarnation())
    return refused(fmt::format("reports of life {}", life.value));
  const auto count = static_cast<std::uint64_t>(body.reports_size());
  if (count == 0 || body.first() > std::numeric_limits<std::uint64_t>::max() - count)
    return refused(fmt::format("{} reports from number {} on", count, body.first()));
  std::size_t cost = 0;
  for (const std::string& one : body.reports()) cost += one.size() + kReportCost;
  if (cost > kMostBatch) return refused(fmt::format("{} reports in one batch", count));
  const auto large =
      std::ranges::find_if(body.reports(), [](const auto& one) { return one.size() > kMostReport; });
  if (large != body.reports().end()) return refused(fmt::format("a report of {} bytes", large->size()));
  ReportBatch batch{.node = arrived.from.node, .life = life, .first = body.first(), .reports = {}};
  for (std::string& report : *body.mutable_reports()) batch.reports.push_back(std::move(report));
  return batch;
}

// Leaves `batch` with what is not written yet.
void ReportInbox::leave_out_doubles(ReportBatch& batch) {
  const Written& written = written_[batch.node];
  if (batch.life != written.life || batch.first >= written.next) return;
  const std::uint64_t doubles = std::min<std::uint64_t>(written.next - batch.first, batch.reports.size());
  batch.reports.erase(batch.reports.begin(), batch.reports.begin() + static_cast<std::ptrdiff_t>(doubles));
  batch.first += doubles;
}

std::optional<ReportBatch> ReportInbox::written_before(ReportBatch batch) {
  if (batch.life < written_[batch.node].life) return std::nullopt;
  leave_out_doubles(batch);
  if (batch.reports.empty()) return std::nullopt;
  Written& written = written_[batch.node];
  written.life = batch.life;
  written.next = batch.end();
  return batch;
}

// The log stays short however many come: a line is said for the 1st, 2nd, 4th, 8th ... of a node.
void ReportInbox::warn(NodeId from, std::string text) {
  if (std::has_single_bit(++written_[from].warnings)) remarks_.push_back(std::move(text));
}

// A member sends a batch when the one before is written, and 20 ms later unless a whole one waits.
bool ReportInbox::has_room(net::PeerId from, Instant now) {
  const auto [found, fresh] = rooms_.try_emplace(from.node);
  Room& room = found->second;
  if (fresh) room.since = now;
  room.batches += (now - std::exchange(room.since, now)).seconds() * kBatchesPerSecond;
  if (room.batches >= kMostAtOnce) room = {.since = now};
  if (room.batches >= 1) {
    --room.batches;
    return true;
  }
  if (++room.over > kMostOver) {
    room.over = 0;
    blamed_.push_back({from, "it sends more reports than a member can have"});
  }
  return false;
}

bool ReportInbox::on(const net::Arrived& arrived, net::Links& links, Instant now) {
  if (arrived.message.channel != kReports) return false;
  links.consumed(arrived.receipt, now);
  if (!has_room(arrived.from, now)) return true;
  auto batch = read(arrived);
  if (!batch.ok()) {
    blamed_.push_back({arrived.from, fmt::format("{}: {}", batch.error().what, batch.error().got)});
    return true;
  }
  leave_out_doubles(*batch);
  Written& written = written_[batch->node];
  if (!batch->reports.empty()) {
    const auto done = write_(*batch);
    if (!done.ok()) {
      if (!failing_) remarks_.push_back(done.error().message());
      failing_ = Failing{.at = now, .last = done.error()};
      return true;
    }
    failing_.reset();
    if (!done->empty()) blamed_.push_back({arrived.from, *done});
    const std::uint64_t next = batch->life == written.life ? written.next : 0;
    if (batch->first > next) {
      warn(batch->node, fmt::format("node {}: {} reports are missing: it had no room to keep them",
                                    batch->node.value, batch->first - next));
    }
    written.life = batch->life;
    written.next = batch->end();
  }
  wire::Reports answer;
  answer.set_kind(wire::Reports::WRITTEN);
  answer.set_life(batch->life.value);
  answer.set_first(written.next);
  // A node that is gone sends them again.
  (void)links.send(arrived.from, host::Lane::kControl,
                   {.channel = kReports, .body = answer.SerializeAsString(), .payload = {}}, now);
  return true;
}

}  // namespace gossamer::node
