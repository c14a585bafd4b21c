// SPDX-License-Identifier: Apache-2.0
#include "tensors/checkpoint.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "host/api/files.h"
#include "json/read_json.h"

namespace gossamer::tensors {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMagic = "GSMRCKPT";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".ckpt";
constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kTrailerBytes = 40;
constexpr std::size_t kFooterReserve = 8192;
// 40,000 sections have less. JSON takes many times as much memory as its text.
constexpr std::uint64_t kMostFooter = std::uint64_t{4} << 20;
static_assert(std::endian::native == std::endian::little, "the format is little-endian");

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string hex(std::uint64_t x) { return fmt::format("{:016x}", x); }

// Appends to a file and knows its length so far, so that sections can be aligned.
class Appender {
 public:
  explicit Appender(host::WritableFile& file) : file_(file) {}

  [[nodiscard]] std::uint64_t offset() const { return offset_; }

  Result<void> append(std::span<const std::byte> bytes) {
    auto done = file_.append(bytes);
    if (done.ok()) offset_ += bytes.size();
    return done;
  }
  Result<void> align() {
    static constexpr std::array<std::byte, kAlignment> kZeros{};
    return append(std::span(kZeros).first((kAlignment - offset_ % kAlignment) % kAlignment));
  }

 private:
  host::WritableFile& file_;
  std::uint64_t offset_ = 0;
};

Result<void> append_trailer(Appender& out, const std::string& footer) {
  const std::uint64_t footer_offset = out.offset();
  if (auto done = out.append(bytes_of(footer)); !done.ok()) return done;
  const std::array<std::uint64_t, 4> numbers = {footer_offset, footer.size(),
                                                XXH3_64bits(footer.data(), footer.size()), kFormat};
  if (auto done = out.append(std::as_bytes(std::span(numbers))); !done.ok()) return done;
  return out.append(bytes_of(kMagic));
}

Result<void> write_file(host::WritableFile& file, const CheckpointInfo& info,
                        std::span<const NamedTensor> tensors) {
  Appender out(file);
  if (auto done = out.append(bytes_of(kMagic)); !done.ok()) return done;
  Json sections = Json::array();
  for (const NamedTensor& tensor : tensors) {
    if (auto done = out.align(); !done.ok()) return done;
    sections.push_back({{"name", tensor.name},
                        {"offset", out.offset()},
                        {"bytes", tensor.bytes.size()},
                        {"xxh3", hex(XXH3_64bits(tensor.bytes.data(), tensor.bytes.size()))}});
    if (auto done = out.append(tensor.bytes); !done.ok()) return done;
  }
  const Json footer = {{"step", info.next_step.value},
                       {"run", info.run_id},
                       {"config", info.config_fingerprint},
                       {"workers", info.workers},
                       {"finished", info.finished},
                       {"cost",
                        {{"load_seconds", info.cost.load_seconds},
                         {"train_seconds", info.cost.train_seconds},
                         {"cpu_seconds", info.cost.cpu_seconds}}},
                       {"losses", info.losses},
                       {"sections", std::move(sections)}};
  if (auto done = append_trailer(out, footer.dump()); !done.ok()) return done;
  if (auto done = file.sync(); !done.ok()) return done;
  return file.close();
}

// The steps of a directory's checkpoint files, newest first. A missing directory holds none.
Result<std::vector<StepNumber>> newest_first(host::Disk& disk, const std::string& directory) {
  const auto there = disk.exists(directory);
  if (!there.ok()) return there.error();
  if (!*there) return std::vector<StepNumber>{};
  const auto names = disk.list(directory);
  if (!names.ok()) return names.error();
  std::vector<StepNumber> steps;
  for (const std::string& name : *names) {
    if (const auto step = read_checkpoint_name(name)) steps.push_back(*step);
  }
  std::ranges::sort(steps, std::greater());
  return steps;
}

Error damaged(const std::string& path, std::string got, std::string expected) {
  return Error{.kind = ErrorKind::kBadData,
               .where = path,
               .what = "damaged checkpoint",
               .got = std::move(got),
               .expected = std::move(expected)};
}

std::uint64_t read_u64(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Reads the footer and verifies its checksum.
Result<Json> read_footer(const std::string& path, std::span<const std::byte> file) {
  if (file.size() < kMagic.size() + kTrailerBytes) {
    return damaged(path, fmt::format("{} bytes", file.size()), "a checkpoint with its trailer");
  }
  const std::size_t trailer = file.size() - kTrailerBytes;
  if (std::memcmp(file.data() + trailer + 32, kMagic.data(), kMagic.size()) != 0) {
    return damaged(path, "another ending", "the ending GSMRCKPT");
  }
  if (const std::uint64_t format = read_u64(file, trailer + 24); format != kFormat) {
    return damaged(path, fmt::format("format {}", format), fmt::format("format {}", kFormat));
  }
  const std::uint64_t offset = read_u64(file, trailer);
  const std::uint64_t length = read_u64(file, trailer + 8);
  if (offset > trailer || length != trailer - offset) {
    return damaged(path, fmt::format("a footer at {} of {} bytes", offset, length),
                   "a footer that ends at the trailer");
  }
  if (length > kMostFooter)
    return damaged(path, fmt::format("a footer of {} bytes", length), fmt::format("at most {}", kMostFooter));
  const auto* text = reinterpret_cast<const char*>(file.data() + offset);
  if (XXH3_64bits(text, length) != read_u64(file, trailer + 16)) {
    return damaged(path, "a footer of another checksum", "the checksum in the trailer");
  }
  Json footer = read_json<Json>(std::string_view(text, length));
  if (!footer.is_object() || !footer.contains("sections") || !footer["sections"].is_array() ||
      !footer.value("step", Json()).is_number_unsigned() || !footer.value("run", Json()).is_string() ||
      !footer.value("config", Json()).is_string() || !footer.value("workers", Json()).is_number_integer()) {
    return damaged(path, "a footer without its fields", "step, run, config, workers and sections");
  }
  return footer;
}

// The cost in a footer. Older files have no cost and no losses.
RunCost cost_of(const Json& footer) {
  const Json cost = footer.value("cost", Json::object());
  const auto seconds = [&cost](const char* key) {
    const Json value = cost.is_object() ? cost.value(key, Json()) : Json();
    return value.is_number() ? value.get<double>() : 0.0;
  };
  return {.load_seconds = seconds("load_seconds"),
          .train_seconds = seconds("train_seconds"),
          .cpu_seconds = seconds("cpu_seconds")};
}

std::vector<double> losses_of(const Json& footer) {
  std::vector<double> losses;
  for (const Json& loss : footer.value("losses", Json::array())) {
    // JSON cannot write a loss that is not finite.
    losses.push_back(loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return losses;
}

CheckpointInfo info_of(const Json& footer) {
  return {.next_step = StepNumber{footer["step"].get<std::uint64_t>()},
          .run_id = footer["run"].get<std::string>(),
          .config_fingerprint = footer["config"].get<std::string>(),
          .workers = footer["workers"].get<int>(),
          .finished = footer.value("finished", Json()) == Json(true),
          .cost = cost_of(footer),
          .losses = losses_of(footer)};
}

struct Opened {
  CheckpointFile file;
  std::vector<std::span<const std::byte>> contents;  // in the order of the tensors; empty: left out
};

Result<Opened> open_checkpoint(host::Disk& disk, const std::string& path, std::string_view config_fingerprint,
                               std::span<const NamedTensor> tensors) {
  auto file = CheckpointFile::open(disk, path);
  if (!file.ok()) return file.error();
  if (file->info().config_fingerprint != config_fingerprint)
    return other_configuration(*file, config_fingerprint);
  const auto left_out = [finished = file->info().finished](const NamedTensor& tensor) {
    return finished && tensor.use == TensorUse::kToGoOn;
  };
  const auto wanted = tensors.size() - static_cast<std::size_t>(std::ranges::count_if(tensors, left_out));
  if (const std::size_t sections = file->names().size(); sections != wanted)
    return damaged(path, fmt::format("{} sections", sections), fmt::format("{}", wanted));
  Opened opened{.file = *std::move(file), .contents = {}};
  for (const NamedTensor& tensor : tensors) {
    if (left_out(tensor)) {
      opened.contents.emplace_back();
      continue;
    }
    auto content = opened.file.section(tensor.name);
    if (!content.ok()) return content.error();
    if (content->size() != tensor.bytes.size()) {
      return damaged(path, fmt::format("{} bytes of {}", content->size(), tensor.name),
                     fmt::format("{}", tensor.bytes.size()));
    }
    opened.contents.push_back(*content);
  }
  return opened;
}

}  // namespace

Result<CheckpointFile> CheckpointFile::open(host::Disk& disk, const std::string& path) {
  auto mapped = disk.map(path);
  if (!mapped.ok()) return mapped.error();
  CheckpointFile file;
  file.path_ = path;
  file.file_ = *std::move(mapped);
  const std::uint64_t size = file.file_->bytes().size();
  const auto footer = read_footer(path, file.file_->bytes());
  if (!footer.ok()) return footer.error();
  file.info_ = info_of(*footer);
  for (const Json& one : (*footer)["sections"]) {
    const bool fields = one.is_object() && one.value("name", Json()).is_string() &&
                        one.value("offset", Json()).is_number_unsigned() &&
                        one.value("bytes", Json()).is_number_unsigned() &&
                        one.value("xxh3", Json()).is_string();
    if (!fields) return damaged(path, "a section without its fields", "name, offset, bytes and xxh3");
    const auto name = one["name"].get<std::string>();
    const Section section{.offset = one["offset"].get<std::uint64_t>(),
                          .bytes = one["bytes"].get<std::uint64_t>(),
                          .xxh3 = one["xxh3"].get<std::string>()};
    if (section.offset > size || section.bytes > size - section.offset)
      return damaged(path, fmt::format("section {} beyond the end", name), "a section inside the file");
    if (!file.sections_.emplace(name, section).second)
      return damaged(path, fmt::format("section {} twice", name), "sections of different names");
  }
  return file;
}

std::vector<std::string> CheckpointFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, section] : sections_) names.push_back(name);
  return names;
}

std::optional<std::uint64_t> CheckpointFile::size_of(const std::string& name) const {
  const auto found = sections_.find(name);
  if (found == sections_.end()) return std::nullopt;
  return found->second.bytes;
}

Result<std::span<const std::byte>> CheckpointFile::section(const std::string& name) const {
  const auto found = sections_.find(name);
  if (found == sections_.end())
    return damaged(path_, fmt::format("no section {}", name), "every tensor of the network");
  const auto content = file_->bytes().subspan(found->second.offset, found->second.bytes);
  if (hex(XXH3_64bits(content.data(), content.size())) != found->second.xxh3) {
    return damaged(path_, fmt::format("section {} of another checksum", name), "the checksum in the footer");
  }
  return content;
}

Error other_configuration(const CheckpointFile& file, std::string_view fingerprint) {
  return {.kind = ErrorKind::kUsage,
          .where = file.path(),
          .what = "the checkpoint belongs to another configuration or other data",
          .got = file.info().config_fingerprint,
          .expected = std::string(fingerprint),
          .fix = "resume with the configuration and data of the first start, or train into a new directory"};
}

Result<void> write_checkpoint(host::Disk& disk, const std::string& path, const CheckpointInfo& info,
                              std::span<const NamedTensor> tensors) {
  const std::string temporary = path + ".tmp";
  auto file = disk.open_writable(temporary, host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  Result<void> done = write_file(**file, info, tensors);
  if (done.ok()) done = disk.rename(temporary, path);
  if (!done.ok()) {
    // The first error is reported. The next save overwrites a file that cannot be removed now.
    static_cast<void>(disk.remove_all(temporary).ok());
    return done;
  }
  return disk.sync_directory(host::parent(path));
}

Result<void> save_checkpoint(host::Disk& disk, const std::string& directory, const CheckpointInfo& info,
                             std::span<const NamedTensor> tensors, int keep) {
  CHECK(keep >= 1, keep);
  const std::string path = directory + "/" + checkpoint_name(info.next_step);
  if (auto written = write_checkpoint(disk, path, info, tensors); !written.ok()) return written;
  auto steps = newest_first(disk, directory);
  if (!steps.ok()) return steps.error();
  // Files of later steps are those that the run could not go on from. They must not push out what it writes.
  std::erase_if(*steps, [&](StepNumber step) { return step > info.next_step; });
  for (std::size_t i = static_cast<std::size_t>(keep); i < steps->size(); ++i) {
    const std::string old = directory + "/" + checkpoint_name((*steps)[i]);
    if (auto removed = disk.remove_all(old); !removed.ok()) return removed;
  }
  return {};
}

Result<std::optional<CheckpointInfo>> load_newest_checkpoint(host::Disk& disk, const std::string& directory,
                                                             std::string_view config_fingerprint,
                                                             std::span<const NamedTensor> tensors,
                                                             EventSink events) {
  const auto steps = newest_first(disk, directory);
  if (!steps.ok()) return steps.error();
  for (const StepNumber step : *steps) {
    const std::string path = directory + "/" + checkpoint_name(step);
    auto opened = open_checkpoint(disk, path, config_fingerprint, tensors);
    if (!opened.ok()) {
      if (opened.error().kind != ErrorKind::kBadData) return opened.error();
      events("checkpoint_damaged", {{"file", path}, {"error", opened.error().message()}});
      continue;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::copy(opened->contents[i].begin(), opened->contents[i].end(), tensors[i].bytes.begin());
    }
    return std::optional(opened->file.info());
  }
  return std::optional<CheckpointInfo>();
}

Result<std::optional<CheckpointInfo>> newest_checkpoint(host::Disk& disk, const std::string& directory) {
  const auto steps = newest_first(disk, directory);
  if (!steps.ok()) return steps.error();
  for (const StepNumber step : *steps) {
    const auto file = CheckpointFile::open(disk, directory + "/" + checkpoint_name(step));
    if (file.ok()) return std::optional(file->info());
    if (file.error().kind != ErrorKind::kBadData) return file.error();
  }
  return std::optional<CheckpointInfo>();
}

std::string checkpoint_name(StepNumber next_step) {
  return fmt::format("{}{:012}{}", kPrefix, next_step.value, kSuffix);
}

std::optional<StepNumber> read_checkpoint_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  StepNumber step;
  const auto digits = name.substr(kPrefix.size());
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), step.value);
  if (read.ec != std::errc() || checkpoint_name(step) != name) return std::nullopt;
  return step;
}

std::uint64_t checkpoint_bytes(std::span<const NamedTensor> tensors) {
  std::uint64_t total = kAlignment + kFooterReserve;
  for (const NamedTensor& tensor : tensors) total += tensor.bytes.size() + kAlignment;
  return total;
}

}  // namespace gossamer::tensors
