// SPDX-License-Identifier: Apache-2.0
//
// ReportBatch: some reports of a member, numbered in order (docs/protocols/reports.md). Thread rule: plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "net/link/channels.h"

namespace gossamer::node {

using net::kReports;
// The most bytes of a batch. Each report counts kReportCost bytes more than it has.
inline constexpr std::size_t kMostBatch = std::size_t{60} << 10;  // a body of a message has 64 KiB at most
inline constexpr std::size_t kReportCost = 8;
inline constexpr std::size_t kMostReport = std::size_t{4} << 10;  // bytes of one report

struct ReportBatch {
  NodeId node;
  Incarnation life;         // in which the numbering began
  std::uint64_t first = 0;  // number of the first report
  std::vector<std::string> reports = {};

  // The number behind the last report.
  [[nodiscard]] std::uint64_t end() const { return first + reports.size(); }
  bool operator==(const ReportBatch&) const = default;
};

}  // namespace gossamer::node
