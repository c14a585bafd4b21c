// SPDX-License-Identifier: Apache-2.0
#include "commands/train/disk_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/human_bytes.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/session_reader.h"
#include "learn/data/read/xmlc_reader.h"
#include "tensors/checkpoint.h"

namespace gossamer::node {
namespace {

constexpr std::size_t kSampleBytes = std::size_t{4} << 20;  // unpacked text

std::optional<std::uint64_t> free_beside(host::Disk& disk, const std::string& path) {
  const auto free = disk.free_bytes(path);
  if (!free.ok()) return std::nullopt;
  return *free;
}

std::uint64_t size_of(host::Disk& disk, const std::string& file) {
  const auto size = disk.file_size(file);
  return size.ok() ? *size : 0;
}

struct Contents {
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
};
// The contents of a flat directory; nothing when it is missing.
Contents contents_of(host::Disk& disk, const std::string& directory) {
  Contents contents;
  const auto there = disk.exists(directory);
  if (!there.ok() || !*there) return contents;
  const auto names = disk.list(directory);
  if (!names.ok()) return contents;
  contents.names = *names;
  for (const std::string& name : contents.names) contents.bytes += size_of(disk, directory + "/" + name);
  return contents;
}

// Counts steps, because nodes write several files for each checkpoint.
std::uint64_t checkpoints_in(const std::vector<std::string>& names) {
  std::set<std::string> steps;
  for (const std::string& name : names) {
    if (name.ends_with(".ckpt") || name.ends_with(".part")) steps.insert(name.substr(0, name.find('.')));
  }
  return steps.size();
}

bool switched_on(const engine::CheckpointConfig& when) {
  return when.every_steps > 0 || when.every_minutes > 0;
}

// Counts the bytes that go through it.
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

// The most bytes that lie on the disk at once. That is one of three moments: the periodic checkpoints are
// most, the last one is written beside the kept ones, or the model is written.
std::uint64_t peak_bytes(const RunSpace& run, std::uint64_t at_once) {
  const engine::DiskNeeded& needed = run.needed;
  const engine::CheckpointConfig& when = run.config.checkpoint;
  const std::uint64_t model = needed.parts + needed.model;
  if (!switched_on(when)) return at_once * needed.checkpoint + model;
  const std::uint64_t before_last = std::min<std::uint64_t>(at_once, when.keep) * needed.checkpoint;
  const std::uint64_t after_last = std::min<std::uint64_t>(at_once, when.keep - 1) * needed.checkpoint;
  return std::max(at_once * needed.checkpoint,
                  needed.last_checkpoint + std::max(before_last, after_last + model));
}

struct Sample {
  std::string text;                // whole lines
  std::uint64_t packed_bytes = 0;  // bytes read for the text, a little more than it needs
  bool whole = false;              // nothing follows it in the file
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
  // A text may be one line. Its sample then ends anywhere.
  const std::size_t lines_end = sample.text.rfind('\n');
  if (!sample.whole && lines_end != std::string::npos) sample.text.resize(lines_end + 1);
  return sample;
}

std::uint64_t text_record_bytes(const data::JsonlRecord& record) {
  std::uint64_t bytes = std::string_view(R"({"text":"","labels":[]})").size() + 1 + record.text.size();
  for (const std::string_view name : record.label_name) bytes += name.size() + 2;
  return bytes + record.label_number.size();
}

std::uint64_t cache_record_bytes(std::size_t features, std::size_t labels) {
  return 8 + 8 * std::uint64_t{features} + 4 * std::uint64_t{labels};
}

// Bytes written for the records of a sample. The import itself complains about bad lines.
std::uint64_t written_for(const std::string& text, RecordFormat format) {
  std::uint64_t bytes = 0;
  const auto source = data::memory_source("sample", text);
  const data::ReadOptions options{.skip_bad = UINT64_MAX};
  if (format == RecordFormat::kXmc) {
    static_cast<void>(data::read_xmlc(*source, options, [&bytes](const data::Record& record) {
                        bytes += cache_record_bytes(record.features.index.size(), record.labels.size());
                        return Result<void>();
                      }).ok());
    return bytes;
  }
  if (format == RecordFormat::kSessions || format == RecordFormat::kText)
    return text.size();  // copied as they are
  static_cast<void>(data::read_jsonl(*source, options, [&](const data::JsonlRecord& record) {
                      bytes += format == RecordFormat::kJsonlText
                                   ? text_record_bytes(record)
                                   : cache_record_bytes(record.value.size(), record.label_name.size() +
                                                                                 record.label_number.size());
                      return Result<void>();
                    }).ok());
  return bytes;
}

}  // namespace

std::uint64_t checkpoints_at_once(const CheckpointPlan& plan) {
  const engine::CheckpointConfig& when = plan.when;
  if (!switched_on(when)) return plan.kept_now;
  std::uint64_t written = plan.kept_now;
  // The checkpoint after the last step is counted elsewhere.
  if (when.every_steps > 0 && plan.steps > 0)
    written = std::max(written, (plan.steps - 1) / when.every_steps);
  if (when.every_minutes > 0) written = std::max<std::uint64_t>(written, plan.kept_now + 1);
  if (when.every_minutes > 0) written = std::max<std::uint64_t>(written, 2);
  return std::min<std::uint64_t>(written, std::uint64_t{when.keep} + 1);
}

Result<void> check_run_space(host::Disk& disk, const RunSpace& run) {
  const auto free = free_beside(disk, run.paths.root);
  if (!free.has_value()) return {};
  const engine::CheckpointConfig& when = run.config.checkpoint;
  const Contents kept = contents_of(disk, run.paths.checkpoints());
  const bool trained =
      std::ranges::find(kept.names, engine::checkpoint_name(StepNumber{run.steps})) != kept.names.end();
  const std::uint64_t kept_now = checkpoints_in(kept.names);
  const std::uint64_t at_once =
      trained ? kept_now : checkpoints_at_once({.when = when, .steps = run.steps, .kept_now = kept_now});
  const std::uint64_t parts_there = contents_of(disk, run.paths.parts()).bytes;
  const std::uint64_t peak = trained ? kept.bytes + parts_there + run.needed.model : peak_bytes(run, at_once);
  const std::uint64_t wanted = peak + kRunLogBytes;
  const std::uint64_t there = kept.bytes + parts_there + contents_of(disk, run.paths.model() + ".tmp").bytes;
  if (wanted <= *free + there) return {};
  const std::string checkpoints =
      at_once == 0 ? ""
                   : fmt::format("up to {} checkpoints of {}, ", at_once, human_bytes(run.needed.checkpoint));
  const std::string delivered =
      run.needed.parts == 0 ? "" : fmt::format("{} for what nodes deliver, ", human_bytes(run.needed.parts));
  const std::string parts = fmt::format("{}: {}{}{} for the model, the rest for logs", human_bytes(wanted),
                                        checkpoints, delivered, human_bytes(run.needed.model));
  std::string fix =
      fmt::format("free {}, or give an --out on a larger disk", human_bytes(wanted - there - *free));
  if (switched_on(when) && run.needed.parts + run.needed.model + kRunLogBytes <= *free + there) {
    fix += ", or do without checkpoints: checkpoint.every_minutes=0 checkpoint.every_steps=0";
  }
  return Error{.kind = ErrorKind::kFailed,
               .where = run.paths.root,
               .what = "the disk is too small for the run",
               .got = fmt::format("{} free", human_bytes(*free + there)),
               .expected = parts,
               .fix = std::move(fix)};
}

ImportEstimate estimate_import(host::Disk& disk, const std::vector<Source>& sources) {
  ImportEstimate estimate;
  for (const Source& source : sources) {
    const std::uint64_t size = source.path == "-" ? 0 : size_of(disk, source.path);
    if (size == 0) continue;  // standard input, pipes
    const Sample sample = sample_of(disk, source.path);
    const std::uint64_t written = written_for(sample.text, source.format);
    if (sample.whole) {
      estimate.bytes += written;
      continue;
    }
    estimate.exact = false;
    const double share = static_cast<double>(size) / static_cast<double>(sample.packed_bytes);
    estimate.bytes += static_cast<std::uint64_t>(static_cast<double>(written) * std::max(1.0, share));
  }
  return estimate;
}

Result<void> check_import_space(const NodeHost& host, const ImportEstimate& estimate,
                                const std::string& path) {
  const auto free = free_beside(host.disk, path);
  if (!free.has_value() || estimate.bytes <= *free) return {};
  const std::string needed = fmt::format("about {} for the imported records", human_bytes(estimate.bytes));
  if (!estimate.exact && estimate.bytes / 2 <= *free) {
    host.say(fmt::format("the disk may be too small: {}, {} free", needed, human_bytes(*free)));
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

}  // namespace gossamer::node
