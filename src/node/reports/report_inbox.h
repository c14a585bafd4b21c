// SPDX-License-Identifier: Apache-2.0
//
// ReportInbox takes the reports of members at their coordinator (docs/protocols/reports.md). It hands each
// new report on once, in its member's order, and tells the member when it is written. Reports that could not
// be written are not taken: the member sends them again.
//
// Thread rule: one owner, the loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "net/link/links.h"
#include "node/reports/report_batch.h"

namespace gossamer::node {

class ReportInbox {
 public:
  // Writes reports, none of which it has written before, so that they outlive this process.
  using Write = std::function<Result<void>(const ReportBatch&)>;
  explicit ReportInbox(Write write) : write_(std::move(write)) {}

  // Takes a batch that an earlier process has written. Returns the reports in it that were not in another
  // one.
  [[nodiscard]] std::optional<ReportBatch> written_before(ReportBatch batch);
  // Consumes a message about reports. False for any other message.
  [[nodiscard]] bool on(const net::Arrived& arrived, net::Links& links, Instant now);
  // Why reports cannot be written; nothing once they can.
  [[nodiscard]] const std::optional<Error>& failing() const { return failing_; }
  [[nodiscard]] std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }

 private:
  // What is written of a node.
  struct Written {
    Incarnation life;
    std::uint64_t next = 0;      // number of the first report that is not written
    std::uint64_t warnings = 0;  // about its batches
  };

  [[nodiscard]] Result<ReportBatch> read(const net::Arrived& arrived) const;
  void leave_out_doubles(ReportBatch& batch);
  void warn(NodeId from, std::string text);

  const Write write_;
  std::map<NodeId, Written> written_;
  std::optional<Error> failing_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
