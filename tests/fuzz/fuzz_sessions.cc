// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a file of sessions, packed or not. The reader answers with sessions of at least one name, none
// with a blank in it, or with bad data that has a place. The result does not depend on the chunk size and the
// workers.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz_source.h"
#include "host/sim/compute.h"
#include "learn/data/read/session_reader.h"

namespace {

using namespace gossamer;

std::vector<std::vector<std::string>> read(std::span<const std::uint8_t> bytes,
                                           const data::ReadOptions& options) {
  const auto source = fuzz::open(bytes);
  if (source == nullptr) return {};
  std::vector<std::vector<std::string>> sessions;
  const auto report =
      data::read_sessions(*source, options, [&](const data::Session& session) -> Result<void> {
        CHECK(!session.items.empty());
        sessions.emplace_back(session.items.begin(), session.items.end());
        sessions.back().emplace_back(session.target);
        for (const std::string& name : sessions.back())
          CHECK(name.find_first_of(" \t\n") == std::string::npos);
        return {};
      });
  CHECK(report.ok() || (report.error().kind == ErrorKind::kBadData && !report.error().where.empty()));
  // A failed read gets to a place that depends on the chunks. That it fails does not depend on them.
  if (!report.ok()) return {};
  CHECK(report->records == sessions.size() && !sessions.empty());
  return sessions;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  host::SimCompute compute({.workers = 3});
  const data::ReadOptions whole{.limits = {.line_bytes = 500, .chunk_bytes = 4096}, .skip_bad = 1000};
  const data::ReadOptions parts{
      .limits = {.line_bytes = 500, .chunk_bytes = 7}, .skip_bad = 1000, .compute = &compute};
  CHECK(read({data, size}, whole) == read({data, size}, parts));
  return 0;
}
