// SPDX-License-Identifier: Apache-2.0
//
// ReportOutbox brings the reports of a member to its coordinator (docs/protocols/reports.md). A report stays
// here until the coordinator has written it. One batch is under way at a time. It is sent again over a new
// link, to another coordinator, and after a time without an answer.
//
// Numbers go up from 0 as long as this object lives, over several lives of the member. The first of these
// lives names the numbering. The memory is bounded: if no coordinator takes reports, the oldest are dropped.
//
// Thread rule: one owner, the loop thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "net/link/links.h"
#include "node/reports/report_batch.h"

namespace gossamer::node {

class ReportOutbox {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  // The time from one batch to the next, unless a whole batch waits.
  static constexpr Duration kSendEvery{20'000'000};
  static constexpr Duration kRepeatAfter{5'000'000'000};
  static constexpr Duration kLookEvery{100'000'000};  // whether there is a link again

  explicit ReportOutbox(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // Hands over a report. One of more than kMostReport bytes is dropped.
  void post(std::string report);
  // Consumes a message about reports. False for any other message.
  [[nodiscard]] bool on(const net::Arrived& arrived, net::PeerId coordinator, net::Links& links, Instant now);
  // `self`: this life of the member.
  void tick(Incarnation self, net::PeerId coordinator, net::Links& links, Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const {
    return kept_.empty() ? std::nullopt : std::optional(next_send_);
  }
  // Reports so far, and how many of them need nothing more: they are written, or dropped.
  struct Told {
    std::uint64_t last = 0;
    std::uint64_t settled = 0;
  };
  [[nodiscard]] Told told() const { return {.last = first_ + kept_.size(), .settled = first_}; }
  [[nodiscard]] std::vector<std::string> take_remarks();

 private:
  static std::size_t cost(const std::string& report) { return report.size() + kReportCost; }
  void drop_oldest();
  // The next batch: the oldest reports.
  [[nodiscard]] std::vector<std::string> oldest() const;

  const std::size_t most_bytes_;
  std::deque<std::string> kept_;
  std::uint64_t first_ = 0;  // number of kept_.front()
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t told_dropped_ = 0;  // of them people know

  std::optional<Incarnation> life_;  // the first one
  Incarnation self_;                 // this life
  std::uint64_t link_ = 0;           // number of its link with the coordinator, in this life
  bool out_ = false;                 // a batch is under way
  Instant next_send_;
};

}  // namespace gossamer::node
