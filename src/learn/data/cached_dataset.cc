// SPDX-License-Identifier: Apache-2.0
#include "learn/data/cached_dataset.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/printable.h"
#include "learn/data/utf8.h"

namespace gossamer::data {
namespace {

Error damaged(const std::string& name, std::string what, std::string got, std::string expected) {
  return Error{.kind = ErrorKind::kBadData,
               .where = name,
               .what = std::move(what),
               .got = std::move(got),
               .expected = std::move(expected),
               .fix = "import the data again"};
}

template <class T>
std::span<const T> array_at(std::span<const std::byte> bytes, std::uint64_t offset, std::uint64_t count) {
  return {reinterpret_cast<const T*>(bytes.data() + offset), static_cast<std::size_t>(count)};
}

// The arrays of one block; `header` has been compared with the block's size.
struct BlockView {
  cache::BlockHeader header;
  std::span<const std::uint32_t> feature_begin;
  std::span<const std::uint32_t> label_begin;
  std::span<const std::uint32_t> feature;
  std::span<const float> value;
  std::span<const std::uint32_t> label;
};

BlockView view_block(std::span<const std::byte> block) {
  BlockView view;
  std::memcpy(&view.header, block.data(), sizeof view.header);
  const std::uint64_t begins = std::uint64_t{view.header.records} + 1;
  std::uint64_t at = sizeof view.header;
  view.feature_begin = array_at<std::uint32_t>(block, at, begins);
  view.label_begin = array_at<std::uint32_t>(block, at + 4 * begins, begins);
  at += 8 * begins;
  view.feature = array_at<std::uint32_t>(block, at, view.header.feature_entries);
  at += 4 * std::uint64_t{view.header.feature_entries};
  view.value = array_at<float>(block, at, view.header.feature_entries);
  at += 4 * std::uint64_t{view.header.feature_entries};
  view.label = array_at<std::uint32_t>(block, at, view.header.label_entries);
  return view;
}

// Whether offsets begin with 0, end with `entries` and never decrease.
template <class T>
bool are_offsets(std::span<const T> begin, std::uint64_t entries) {
  return begin.front() == 0 && begin.back() == entries && std::is_sorted(begin.begin(), begin.end());
}

// Whether every row is strictly increasing and below `bound`.
bool are_rows(std::span<const std::uint32_t> begin, std::span<const std::uint32_t> numbers,
              std::uint32_t bound) {
  for (std::size_t row = 0; row + 1 < begin.size(); ++row) {
    std::uint64_t least = 0;
    for (std::size_t i = begin[row]; i < begin[row + 1]; ++i) {
      if (numbers[i] < least) return false;
      least = std::uint64_t{numbers[i]} + 1;
    }
    if (least > bound) return false;
  }
  return true;
}

// What is wrong with a block, or nullptr.
const char* block_fault(std::span<const std::byte> block, const cache::BlockEntry& entry,
                        const cache::Trailer& trailer) {
  if (XXH3_64bits(block.data(), block.size()) != entry.checksum)
    return "its checksum does not match its bytes";
  if (block.size() < sizeof(cache::BlockHeader)) return "it is too short for its header";
  cache::BlockHeader header;
  std::memcpy(&header, block.data(), sizeof header);
  if (header.reserved != 0 || cache::padded(cache::block_payload_bytes(header)) != block.size()) {
    return "its size does not match its counts";
  }
  const BlockView view = view_block(block);
  if (!are_offsets(view.feature_begin, header.feature_entries) ||
      !are_offsets(view.label_begin, header.label_entries)) {
    return "its record offsets are out of order";
  }
  if (!are_rows(view.feature_begin, view.feature, trailer.features)) return "a feature index is wrong";
  if (!are_rows(view.label_begin, view.label, trailer.labels)) return "a label is wrong";
  if (!std::all_of(view.value.begin(), view.value.end(), [](float v) { return std::isfinite(v); })) {
    return "a feature value is not finite";
  }
  return nullptr;
}

// What is wrong with names, and the first name with which it is.
struct NameFault {
  std::size_t name = SIZE_MAX;
  const char* what = nullptr;
};

std::string_view name_at(const cache::Names& names, std::size_t i) {
  return names.bytes.substr(names.offset[i], names.offset[i + 1] - names.offset[i]);
}

// The fault of names whose hash gives `part` of `parts`: equal names are in one part.
NameFault name_fault(const cache::Names& names, std::size_t part, std::size_t parts) {
  struct Hashed {
    std::uint64_t hash;
    std::size_t name;
  };
  std::vector<Hashed> own;
  NameFault fault;
  for (std::size_t i = 0; i + 1 < names.offset.size(); ++i) {
    const std::string_view name = name_at(names, i);
    const std::uint64_t hash = XXH3_64bits(name.data(), name.size());
    if (hash % parts != part) continue;
    own.push_back({hash, i});
    if (fault.what == nullptr && utf8_prefix(name) < name.size()) fault = {i, "is not UTF-8"};
  }
  std::sort(own.begin(), own.end(), [&names](const Hashed& a, const Hashed& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    const auto order = name_at(names, a.name) <=> name_at(names, b.name);
    return order != 0 ? order < 0 : a.name < b.name;
  });
  for (std::size_t i = 1; i < own.size(); ++i) {
    const bool again =
        own[i - 1].hash == own[i].hash && name_at(names, own[i - 1].name) == name_at(names, own[i].name);
    if (again && own[i].name < fault.name) fault = {own[i].name, "is that of an earlier one, too"};
  }
  return fault;
}

// Checks a file from its end to its front.
class Verifier {
 public:
  Verifier(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  [[nodiscard]] Result<cache::Trailer> trailer() const;
  // The block table, checked against the file's layout.
  [[nodiscard]] Result<std::span<const cache::BlockEntry>> blocks(const cache::Trailer& trailer) const;
  // One string table of `count` names, from `at`, which moves behind it.
  [[nodiscard]] Result<cache::Names> names(std::uint64_t& at, std::uint64_t end, std::uint64_t count) const;
  [[nodiscard]] Result<void> contents(const cache::Trailer& trailer,
                                      std::span<const cache::BlockEntry> blocks,
                                      host::Compute& compute) const;
  // A model knows labels and features by name, so that each name is one's alone.
  [[nodiscard]] Result<void> distinct(const cache::Names& names, std::string_view kind,
                                      host::Compute& compute) const;

 private:
  [[nodiscard]] Result<void> totals(const cache::Trailer& trailer,
                                    std::span<const cache::BlockEntry> blocks) const;

  std::span<const std::byte> bytes_;
  const std::string& name_;
};

Result<cache::Trailer> Verifier::trailer() const {
  constexpr std::size_t kLeast = sizeof(cache::Header) + sizeof(cache::Trailer);
  cache::Header header;
  cache::Trailer trailer;
  const bool starts = bytes_.size() >= sizeof header &&
                      std::memcmp(bytes_.data(), cache::kHeaderMagic.data(), sizeof header.magic) == 0;
  if (!starts)
    return damaged(name_, "this is not a dataset cache", "another kind of file",
                   "a file that starts with GSMRDATA");
  std::memcpy(&header, bytes_.data(), sizeof header);
  if (header.version != cache::kVersion) {
    return damaged(name_, "the dataset cache has another version", fmt::format("version {}", header.version),
                   fmt::format("version {}", cache::kVersion));
  }
  if (bytes_.size() >= kLeast)
    std::memcpy(&trailer, bytes_.data() + bytes_.size() - sizeof trailer, sizeof trailer);
  if (bytes_.size() < kLeast ||
      std::memcmp(trailer.magic, cache::kTrailerMagic.data(), sizeof trailer.magic) != 0) {
    return damaged(name_, "the dataset cache is cut off",
                   fmt::format("{} bytes without a trailer", bytes_.size()), "the whole file");
  }
  if (XXH3_64bits(&trailer, offsetof(cache::Trailer, trailer_checksum)) != trailer.trailer_checksum) {
    return damaged(name_, "the dataset cache is damaged", "a trailer whose checksum does not match",
                   "the bytes as written");
  }
  const std::uint64_t footer_end = bytes_.size() - sizeof trailer;
  const bool sane = trailer.version == cache::kVersion && header.reserved == 0 && trailer.reserved == 0 &&
                    std::has_single_bit(trailer.records_per_block) &&
                    trailer.records_per_block <= cache::kMaxRecordsPerBlock &&
                    trailer.footer_offset >= sizeof header && trailer.footer_offset <= footer_end &&
                    trailer.footer_offset % 8 == 0 &&
                    trailer.footer_bytes == footer_end - trailer.footer_offset &&
                    trailer.blocks <= trailer.footer_bytes / sizeof(cache::BlockEntry) &&
                    (trailer.flags & ~(cache::kHasLabelNames | cache::kHasFeatureNames)) == 0;
  if (!sane)
    return damaged(name_, "the dataset cache is damaged", "a trailer that contradicts the file",
                   "the bytes as written");
  return trailer;
}

Result<std::span<const cache::BlockEntry>> Verifier::blocks(const cache::Trailer& trailer) const {
  const auto footer = bytes_.subspan(trailer.footer_offset, trailer.footer_bytes);
  if (XXH3_64bits(footer.data(), footer.size()) != trailer.footer_checksum) {
    return damaged(name_, "the dataset cache is damaged", "a footer whose checksum does not match",
                   "the bytes as written");
  }
  const auto blocks = array_at<cache::BlockEntry>(footer, 0, trailer.blocks);
  std::uint64_t at = sizeof(cache::Header);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const cache::BlockEntry& block = blocks[i];
    if (block.offset != at || block.bytes % 8 != 0 || block.bytes > trailer.footer_offset - at) {
      return damaged(name_, "the dataset cache is damaged",
                     fmt::format("block {} at byte {}", i, block.offset),
                     fmt::format("it at byte {}, before byte {}", at, trailer.footer_offset));
    }
    at += block.bytes;
  }
  if (at != trailer.footer_offset) {
    return damaged(name_, "the dataset cache is damaged", fmt::format("blocks up to byte {}", at),
                   fmt::format("blocks up to byte {}", trailer.footer_offset));
  }
  return blocks;
}

Result<cache::Names> Verifier::names(std::uint64_t& at, std::uint64_t end, std::uint64_t count) const {
  const Error wrong = damaged(name_, "the dataset cache is damaged",
                              "a table of names that contradicts itself", fmt::format("{} names", count));
  if ((end - at) / sizeof(std::uint64_t) < count + 1) return wrong;
  const auto offset = array_at<std::uint64_t>(bytes_, at, count + 1);
  at += (count + 1) * sizeof(std::uint64_t);
  if (offset.back() > end - at || !are_offsets(offset, offset.back())) return wrong;
  const auto text = array_at<char>(bytes_, at, offset.back());
  at += cache::padded(offset.back());
  if (at > end) return wrong;
  return cache::Names{.offset = offset, .bytes = {text.data(), text.size()}};
}

Result<void> Verifier::contents(const cache::Trailer& trailer, std::span<const cache::BlockEntry> blocks,
                                host::Compute& compute) const {
  struct Fault {
    std::size_t block = 0;
    const char* what = nullptr;
  };
  // Keeps every worker's first fault. The ranges are in order, so the first of these is the first of all.
  std::vector<Fault> faults(static_cast<std::size_t>(compute.workers()));
  compute.run([&](int worker) {
    const host::Range range = host::worker_range(blocks.size(), worker, compute.workers());
    Fault& fault = faults[static_cast<std::size_t>(worker)];
    for (std::size_t i = range.begin; i < range.end && fault.what == nullptr; ++i) {
      fault = {.block = i,
               .what = block_fault(bytes_.subspan(blocks[i].offset, blocks[i].bytes), blocks[i], trailer)};
    }
  });
  for (const Fault& fault : faults) {
    if (fault.what == nullptr) continue;
    return damaged(
        name_, "the dataset cache is damaged",
        fmt::format("block {} at byte {}: {}", fault.block, blocks[fault.block].offset, fault.what),
        "the bytes as written");
  }
  return totals(trailer, blocks);
}

Result<void> Verifier::distinct(const cache::Names& names, std::string_view kind,
                                host::Compute& compute) const {
  std::vector<NameFault> faults(static_cast<std::size_t>(compute.workers()));
  compute.run([&](int worker) {
    const auto part = static_cast<std::size_t>(worker);
    faults[part] = name_fault(names, part, faults.size());
  });
  const NameFault& first = *std::ranges::min_element(faults, {}, &NameFault::name);
  if (first.what == nullptr) return {};
  return damaged(name_, "the dataset cache is damaged",
                 fmt::format("the name of {} {}, {}, which {}", kind, first.name,
                             quote(name_at(names, first.name)), first.what),
                 "distinct names in UTF-8");
}

Result<void> Verifier::totals(const cache::Trailer& trailer,
                              std::span<const cache::BlockEntry> blocks) const {
  std::uint64_t records = 0;
  std::uint64_t feature_entries = 0;
  std::uint64_t label_entries = 0;
  bool full = true;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const cache::BlockHeader header = view_block(bytes_.subspan(blocks[i].offset, blocks[i].bytes)).header;
    records += header.records;
    feature_entries += header.feature_entries;
    label_entries += header.label_entries;
    const bool last = i + 1 == blocks.size();
    full = full && header.records > 0 && header.records <= trailer.records_per_block &&
           (last || header.records == trailer.records_per_block);
  }
  if (full && records == trailer.records && feature_entries == trailer.feature_entries &&
      label_entries == trailer.label_entries) {
    return {};
  }
  return damaged(name_, "the dataset cache is damaged", fmt::format("blocks with {} records", records),
                 fmt::format("{} records, {} to a block", trailer.records, trailer.records_per_block));
}

}  // namespace

Result<std::unique_ptr<CachedDataset>> CachedDataset::open(host::Disk& disk, const std::string& path,
                                                           host::Compute& compute) {
  auto file = disk.map(path);
  if (!file.ok()) return file.error();
  return open(*std::move(file), path, compute);
}

Result<std::unique_ptr<CachedDataset>> CachedDataset::open(std::unique_ptr<host::MappedFile> file,
                                                           const std::string& name, host::Compute& compute) {
  const auto bytes = file->bytes();
  CHECK(bytes.empty() || reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 == 0);
  std::unique_ptr<CachedDataset> dataset(new CachedDataset(std::move(file)));
  const Verifier verifier(bytes, name);

  const auto trailer = verifier.trailer();
  if (!trailer.ok()) return trailer.error();
  dataset->trailer_ = *trailer;
  dataset->block_shift_ = static_cast<unsigned>(std::countr_zero(trailer->records_per_block));
  const auto blocks = verifier.blocks(*trailer);
  if (!blocks.ok()) return blocks.error();
  dataset->blocks_ = *blocks;

  std::uint64_t at = trailer->footer_offset + blocks->size_bytes();
  const std::uint64_t end = trailer->footer_offset + trailer->footer_bytes;
  if ((trailer->flags & cache::kHasLabelNames) != 0) {
    const auto names = verifier.names(at, end, trailer->labels);
    if (!names.ok()) return names.error();
    dataset->label_names_ = *names;
  }
  if ((trailer->flags & cache::kHasFeatureNames) != 0) {
    const auto names = verifier.names(at, end, trailer->features);
    if (!names.ok()) return names.error();
    dataset->feature_names_ = *names;
  }
  if (at != end) return damaged(name, "the dataset cache is damaged", "bytes behind the footer", "none");
  if (auto done = verifier.contents(*trailer, *blocks, compute); !done.ok()) return done.error();
  for (const auto& [kind, names] :
       {std::pair("label", dataset->label_names_), std::pair("feature", dataset->feature_names_)}) {
    if (auto done = verifier.distinct(names, kind, compute); !done.ok()) return done.error();
  }
  return dataset;
}

Record CachedDataset::record(RecordIndex i) const {
  CHECK(i.value < trailer_.records, i.value, trailer_.records);
  const cache::BlockEntry& entry = blocks_[i.value >> block_shift_];
  const BlockView block = view_block(file_->bytes().subspan(entry.offset, entry.bytes));
  const std::size_t row = i.value & ((std::uint64_t{1} << block_shift_) - 1);
  const std::size_t feature = block.feature_begin[row];
  const std::size_t features = block.feature_begin[row + 1] - feature;
  const std::size_t label = block.label_begin[row];
  return {.features = {block.feature.subspan(feature, features), block.value.subspan(feature, features)},
          .labels = block.label.subspan(label, block.label_begin[row + 1] - label)};
}

namespace {

std::string_view name_of(const cache::Names& names, std::uint32_t i) {
  if (names.offset.empty()) return {};
  CHECK(i + std::size_t{1} < names.offset.size(), i, names.offset.size());
  return name_at(names, i);
}

}  // namespace

std::string_view CachedDataset::label_name(std::uint32_t label) const { return name_of(label_names_, label); }

std::string_view CachedDataset::feature_name(std::uint32_t feature) const {
  return name_of(feature_names_, feature);
}

}  // namespace gossamer::data
