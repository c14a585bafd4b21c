// SPDX-License-Identifier: Apache-2.0
//
// ReportInbox takes the reports of members at their coordinator (docs/protocols/reports.md). It hands each
// new report on once, in its member's order, and tells the member when it is written. Reports that could not
// be written are not taken: the member sends them again. A node that sends what no member sends, or more
// often, is to be blamed.
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
  // A member to be fenced.
  struct Blamed {
    net::PeerId peer;
    std::string why;  // for people
  };
  // Batches of a node a second, in the mean.
  static constexpr double kBatchesPerSecond = 100;
  // Batches at once: more than a member may keep (ReportOutbox).
  static constexpr double kMostAtOnce = 400;
  // Batches above both are dropped. After so many of them the node is blamed.
  static constexpr std::uint64_t kMostOver = 1000;

  // Writes reports, none of which it has written before, so that they outlive this process. Returns why their
  // sender is to be blamed; empty if it is not.
  using Write = std::function<Result<std::string>(const ReportBatch&)>;
  explicit ReportInbox(Write write) : write_(std::move(write)) {}

  // Takes a batch that an earlier process has written. Returns the reports in it that were not in another
  // one.
  [[nodiscard]] std::optional<ReportBatch> written_before(ReportBatch batch);
  // Consumes a message about reports. False for any other message.
  [[nodiscard]] bool on(const net::Arrived& arrived, net::Links& links, Instant now);
  // When reports could not be written for the last time; nothing once they can.
  struct Failing {
    Instant at;
    Error last;
  };
  [[nodiscard]] const std::optional<Failing>& failing() const { return failing_; }
  [[nodiscard]] std::vector<Blamed> take_blamed() { return std::exchange(blamed_, {}); }
  [[nodiscard]] std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }

 private:
  // What is written of a node.
  struct Written {
    Incarnation life;
    std::uint64_t next = 0;      // number of the first report that is not written
    std::uint64_t warnings = 0;  // about its batches
  };
  // How many batches of a node may come.
  struct Room {
    double batches = kMostAtOnce;
    std::uint64_t over = 0;  // dropped since it was full
    Instant since;
  };

  [[nodiscard]] Result<ReportBatch> read(const net::Arrived& arrived) const;
  [[nodiscard]] bool has_room(net::PeerId from, Instant now);
  void leave_out_doubles(ReportBatch& batch);
  void warn(NodeId from, std::string text);

  const Write write_;
  std::map<NodeId, Written> written_;
  std::map<NodeId, Room> rooms_;
  std::vector<Blamed> blamed_;
  std::optional<Failing> failing_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
