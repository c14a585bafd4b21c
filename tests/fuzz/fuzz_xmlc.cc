// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an XMLC file, packed or not. The reader answers with records that keep the promises of rows.h,
// or with bad data that has a place. The records do not depend on the chunk size and the workers.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "fuzz_source.h"
#include "host/sim/compute.h"
#include "learn/data/in_memory_dataset.h"
#include "learn/data/read/test_collected_records.h"
#include "learn/data/read/xmlc_reader.h"

namespace {

using namespace gossamer;

std::vector<data::CollectedRecord> read(std::span<const std::uint8_t> bytes,
                                        const data::ReadOptions& options) {
  const auto source = fuzz::open(bytes);
  if (source == nullptr) return {};
  data::InMemoryDataset set({.features = UINT32_MAX, .labels = UINT32_MAX});
  const auto report = data::read_xmlc(*source, options, [&](const data::Record& record) -> Result<void> {
    set.add(record);
    return {};
  });
  CHECK(report.ok() || (report.error().kind == ErrorKind::kBadData && !report.error().where.empty()));
  // A failed read gets to a place that depends on the chunks. That it fails does not depend on them.
  if (!report.ok()) return {};
  CHECK(report->records == set.size() && set.size() > 0);
  return data::collect(set);
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
