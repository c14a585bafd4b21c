// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a JSON lines file. Reader and assembler answer with records that keep the promises of rows.h,
// or with bad data that has a place. The result does not depend on the chunk size and the workers.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz_source.h"
#include "host/sim/compute.h"
#include "learn/data/in_memory_dataset.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/record_assembler.h"
#include "learn/data/read/test_collected_records.h"

namespace {

using namespace gossamer;

struct Got {
  std::vector<data::CollectedRecord> records;
  std::string texts;

  bool operator==(const Got&) const = default;
};

Got read(std::span<const std::uint8_t> bytes, const data::ReadOptions& options) {
  const auto source = fuzz::open(bytes);
  if (source == nullptr) return {};
  Got got;
  data::InMemoryDataset set({.features = UINT32_MAX, .labels = UINT32_MAX});
  data::RecordAssembler assembler;
  const auto add = [&](const data::JsonlRecord& line) -> Result<void> {
    const auto labels = assembler.labels(line);
    if (!labels.ok()) return labels.error();
    data::Record record{.features = {}, .labels = *labels};
    if (line.kind == data::JsonlRecord::Kind::kText) {
      got.texts += line.text;
    } else {
      const auto features = assembler.features(line);
      if (!features.ok()) return features.error();
      record.features = *features;
    }
    set.add(record);
    return {};
  };
  const auto report = data::read_jsonl(*source, options, add);
  CHECK(report.ok() || (report.error().kind == ErrorKind::kBadData && !report.error().where.empty()));
  // A failed read gets to a place that depends on the chunks. That it fails does not depend on them.
  if (!report.ok()) return {};
  got.records = data::collect(set);
  return got;
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
