// SPDX-License-Identifier: Apache-2.0
#include "node/reports/report_outbox.h"

#include <fmt/format.h>
#include <gossamer/reports.pb.h>

namespace gossamer::node {

void ReportOutbox::post(std::string report) {
  if (report.size() > kMostReport) {
    ++dropped_;
    return;
  }
  bytes_ += cost(report);
  kept_.push_back(std::move(report));
  while (bytes_ > most_bytes_) drop_oldest();
}

void ReportOutbox::drop_oldest() {
  bytes_ -= cost(kept_.front());
  kept_.pop_front();
  ++first_;
  ++dropped_;
}

std::vector<std::string> ReportOutbox::oldest() const {
  std::vector<std::string> reports;
  std::size_t bytes = 0;
  for (const std::string& report : kept_) {
    bytes += cost(report);
    if (bytes > kMostBatch) break;
    reports.push_back(report);
  }
  return reports;
}

void ReportOutbox::tick(Incarnation self, net::PeerId coordinator, net::Links& links, Instant now) {
  if (!life_) life_ = self;
  const net::LinkStatistics link = links.statistics(coordinator.node);
  if (link.link != link_ || self != self_) {
    link_ = link.link;
    self_ = self;
    out_ = false;
    next_send_ = now;
  }
  const bool whole = !out_ && bytes_ >= kMostBatch;
  if (kept_.empty() || (next_send_ > now && !whole)) return;
  out_ = link.up;
  next_send_ = now + (out_ ? kRepeatAfter : kLookEvery);
  if (!out_) return;
  wire::Reports batch;
  batch.set_kind(wire::Reports::BATCH);
  batch.set_life(life_->value);
  batch.set_first(first_);
  for (std::string& report : oldest()) batch.add_reports(std::move(report));
  // The next tick notices a link that is gone.
  (void)links.send(coordinator, host::Lane::kControl,
                   {.channel = kReports, .body = batch.SerializeAsString(), .payload = {}}, now);
}

bool ReportOutbox::on(const net::Arrived& arrived, net::PeerId coordinator, net::Links& links, Instant now) {
  if (arrived.message.channel != kReports) return false;
  links.consumed(arrived.receipt, now);
  wire::Reports body;
  if (arrived.from != coordinator || !body.ParseFromString(arrived.message.body)) return true;
  if (body.kind() != wire::Reports::WRITTEN || !life_ || Incarnation(body.life()) != *life_) return true;
  if (body.first() > first_ + kept_.size()) return true;  // there are no such reports
  for (; first_ < body.first(); ++first_) {
    bytes_ -= cost(kept_.front());
    kept_.pop_front();
  }
  if (std::exchange(out_, false)) next_send_ = now + kSendEvery;
  return true;
}

// Once reports are dropped, each new one drops another. So a line is said when they are twice as many.
std::vector<std::string> ReportOutbox::take_remarks() {
  if (dropped_ == told_dropped_ || dropped_ < 2 * told_dropped_) return {};
  told_dropped_ = dropped_;
  return {fmt::format("reports were dropped, {} so far: no coordinator takes them", dropped_)};
}

}  // namespace gossamer::node
