// SPDX-License-Identifier: Apache-2.0
//
// Reports of members that send anything, half right or in bytes, a disk that fails, and a journal that begins
// with anything. No report counts twice, and reports of a member count in order. What was written is what the
// next coordinator reads.
#include <gossamer/reports.pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "cluster/control/test_nobody.h"
#include "host/api/files.h"
#include "host/sim/disk.h"
#include "node/reports/report_inbox.h"
#include "node/reports/report_journal.h"

namespace {

using namespace gossamer;
using namespace gossamer::node;
using fuzz::Choices;

// What has counted so far, by node: the life, and the number behind the last report.
using Counted = std::map<NodeId, std::pair<Incarnation, std::uint64_t>>;

void count(Counted& counted, const ReportBatch& batch) {
  CHECK(!batch.reports.empty() && batch.end() > batch.first);
  const auto& [life, next] = counted[batch.node];
  CHECK(batch.life > life || (batch.life == life && batch.first >= next));
  counted[batch.node] = {batch.life, batch.end()};
}

std::string some_batch(Choices& choices) {
  if (choices.below(8) == 0) return choices.text();
  wire::Reports body;
  body.set_kind(static_cast<wire::Reports::Kind>(choices.below(8) == 0 ? choices.below(4) : 1));
  body.set_life(choices.number());
  body.set_first(choices.number());
  for (std::size_t i = choices.below(5); i > 0; --i) body.add_reports(choices.text(8));
  return body.SerializeAsString();
}

Counted read(host::Disk& disk) {
  Counted counted;
  ReportInbox inbox([](const ReportBatch&) { return Result<std::string>(std::string()); });
  ReportJournal journal(disk, "/reports");
  const auto cut = journal.open([&](ReportBatch batch) {
    if (const auto fresh = inbox.written_before(std::move(batch))) count(counted, *fresh);
  });
  CHECK(cut.ok());
  return counted;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  cluster::Nobody network;
  net::Links links(network, {.run = "run", .self = {NodeId(1), Incarnation(1)}, .program = "fuzz"});
  host::SimDisk disk;
  if (choices.flip()) CHECK(host::replace_file(disk, "/reports", choices.text()).ok());
  ReportJournal journal(disk, "/reports");
  Counted counted = read(disk);
  ReportInbox inbox([&](const ReportBatch& batch) -> Result<std::string> {
    const bool full = choices.below(4) == 0;
    disk.restart_count({.capacity_bytes = full ? choices.below(300) : 1 << 20});
    if (auto kept = journal.append(batch); !kept.ok()) return kept.error();
    count(counted, batch);
    return std::string();
  });
  CHECK(journal.open([&](ReportBatch batch) { (void)inbox.written_before(std::move(batch)); }).ok());
  while (choices.left()) {
    const net::PeerId from{NodeId(2 + choices.below(2)), Incarnation(choices.number())};
    CHECK(inbox.on({.from = from,
                    .message = {.channel = kReports, .body = some_batch(choices), .payload = {}},
                    .receipt = {}},
                   links, Instant()));
  }
  disk.restart_count({});
  // A batch whose append failed may be there in part, and is cut off then. All that counted is there.
  for (const auto& [node, last] : counted) CHECK(read(disk)[node] >= last);
  return 0;
}
