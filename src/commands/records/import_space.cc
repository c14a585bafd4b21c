// SPDX-License-Identifier: Apache-2.0
#include "commands/records/import_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/function_ref.h"
#include "base/human_bytes.h"
#include "commands/records/record_formats.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/xmlc_reader.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kSampleBytes = std::size_t{4} << 20;  // of text, unpacked

// Counts what goes through it.
class CountingFile final : public host::SequentialFile {
 public:
  CountingFile(std::unique_ptr<host::SequentialFile> file, std::uint64_t& count)
      : file_(std::move(file)), count_(count) {}
  Result<std::size_t> read(std::span<std::byte> out) override {
    auto got = file_->read(out);
    if (got.ok()) count_ += *got;
    return got;
  }

 private:
  std::unique_ptr<host::SequentialFile> file_;
  std::uint64_t& count_;
};

struct Sample {
  std::string text;                // whole lines
  std::uint64_t packed_bytes = 0;  // read for it, a little more than it needs
  bool whole = false;              // nothing follows
};

// The first lines of a file; empty when there is nothing to learn from it.
Sample sample_of(host::Disk& disk, const std::string& path) {
  Sample sample;
  auto file = disk.open_sequential(path);
  if (!file.ok()) return sample;
  auto source = data::unpack(std::make_unique<CountingFile>(std::move(*file), sample.packed_bytes), path);
  if (!source.ok()) return sample;
  sample.text.resize(kSampleBytes);
  const auto got = (*source)->read(std::as_writable_bytes(std::span(sample.text)));
  sample.text.resize(got.ok() ? *got : 0);
  sample.whole = sample.text.size() < kSampleBytes;
  // A text may be one line; the sample of it then ends anywhere.
  const std::size_t lines_end = sample.text.rfind('\n');
  if (!sample.whole && lines_end != std::string::npos) sample.text.resize(lines_end + 1);
  return sample;
}

std::uint64_t cache_record_bytes(std::size_t features, std::size_t labels) {
  return 8 + 8 * std::uint64_t{features} + 4 * std::uint64_t{labels};
}

// Adds up the bytes of JSON lines.
std::uint64_t sum_of(std::string_view sample, FunctionRef<std::uint64_t(const data::JsonlRecord&)> bytes_of) {
  std::uint64_t bytes = 0;
  const auto source = data::memory_source("sample", sample);
  static_cast<void>(data::read_jsonl(*source, {.skip_bad = UINT64_MAX}, [&](const data::JsonlRecord& record) {
                      bytes += bytes_of(record);
                      return Result<void>();
                    }).ok());
  return bytes;
}

}  // namespace

std::uint64_t estimate_xmlc(std::string_view sample) {
  std::uint64_t bytes = 0;
  const auto source = data::memory_source("sample", sample);
  static_cast<void>(data::read_xmlc(*source, {.skip_bad = UINT64_MAX}, [&bytes](const data::Record& record) {
                      bytes += cache_record_bytes(record.features.index.size(), record.labels.size());
                      return Result<void>();
                    }).ok());
  return bytes;
}

std::uint64_t estimate_jsonl(std::string_view sample) {
  return sum_of(sample, [](const data::JsonlRecord& record) {
    return cache_record_bytes(record.value.size(), record.label_name.size() + record.label_number.size());
  });
}

std::uint64_t estimate_text(std::string_view sample) {
  return sum_of(sample, [](const data::JsonlRecord& record) {
    std::uint64_t bytes = std::string_view(R"({"text":"","labels":[]})").size() + 1 + record.text.size();
    for (const std::string_view name : record.label_name) bytes += name.size() + 2;
    return bytes + record.label_number.size();
  });
}

std::uint64_t estimate_copy(std::string_view sample) { return sample.size(); }

ImportEstimate estimate_import(host::Disk& disk, const std::vector<Source>& sources) {
  ImportEstimate estimate;
  for (const Source& source : sources) {
    if (source.path == "-") continue;
    const auto size = disk.file_size(source.path);
    if (!size.ok() || *size == 0) continue;  // pipes
    const Sample sample = sample_of(disk, source.path);
    const std::uint64_t written = row_of(source.format).estimate(sample.text);
    if (sample.whole) {
      estimate.bytes += written;
      continue;
    }
    estimate.exact = false;
    const double share = static_cast<double>(*size) / static_cast<double>(sample.packed_bytes);
    estimate.bytes += static_cast<std::uint64_t>(static_cast<double>(written) * std::max(1.0, share));
  }
  return estimate;
}

Result<void> check_import_space(const run::NodeHost& host, const ImportEstimate& estimate,
                                const std::string& path) {
  const auto free = host.disk.free_bytes(path);
  if (!free.ok() || estimate.bytes <= *free) return {};
  const std::string needed = fmt::format("about {} for the imported records", human_bytes(estimate.bytes));
  if (!estimate.exact && estimate.bytes / 2 <= *free) {
    host.warn(fmt::format("the disk may be too small: {}, {} free", needed, human_bytes(*free)));
    return {};
  }
  return Error{
      .kind = ErrorKind::kFailed,
      .where = path,
      .what = "the disk is too small for the records",
      .got = fmt::format("{} free", human_bytes(*free)),
      .expected = needed,
      .fix = fmt::format("free {}, or give an --out on a larger disk", human_bytes(estimate.bytes - *free))};
}

}  // namespace gossamer::commands
