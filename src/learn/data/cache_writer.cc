// SPDX-License-Identifier: Apache-2.0
#include "learn/data/cache_writer.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "host/api/files.h"

namespace gossamer::data {
namespace {

constexpr std::uint64_t kMaxBlockEntries = 0xFFFFFFFFU;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
void put(std::vector<std::byte>& out, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Has no branch in its loop: every entry of every file passes here.
bool increasing(std::span<const std::uint32_t> numbers) {
  bool rising = true;
  for (std::size_t i = 1; i < numbers.size(); ++i) rising &= numbers[i - 1] < numbers[i];
  return rising;
}
bool finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F80'0000;
  bool all = true;
  for (const float v : values) all &= (std::bit_cast<std::uint32_t>(v) & kExponent) != kExponent;
  return all;
}

struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

// Passes the footer through a buffer and its checksum to the file.
class CacheWriter::Footer {
 public:
  explicit Footer(CacheWriter& writer) : writer_(writer), hash_(XXH3_createState()) {
    CHECK(hash_ != nullptr);
    XXH3_64bits_reset(hash_.get());
  }

  [[nodiscard]] Result<void> put(std::span<const std::byte> bytes) {
    constexpr std::size_t kFull = std::size_t{1} << 20;
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return buffer_.size() < kFull ? Result<void>() : flush();
  }
  [[nodiscard]] Result<void> put_names(std::span<const std::string_view> names) {
    std::uint64_t offset = 0;
    if (auto done = put(bytes_of(offset)); !done.ok()) return done;
    for (const std::string_view name : names) {
      offset += name.size();
      if (auto done = put(bytes_of(offset)); !done.ok()) return done;
    }
    for (const std::string_view name : names) {
      if (auto done = put(std::as_bytes(std::span(name))); !done.ok()) return done;
    }
    constexpr std::byte kZeros[8] = {};
    return put(std::span(kZeros).first(cache::padded(offset) - offset));
  }
  [[nodiscard]] Result<void> flush() {
    XXH3_64bits_update(hash_.get(), buffer_.data(), buffer_.size());
    auto done = writer_.append(buffer_);
    buffer_.clear();
    return done;
  }
  // The checksum of everything flushed.
  [[nodiscard]] std::uint64_t checksum() const { return XXH3_64bits_digest(hash_.get()); }

 private:
  CacheWriter& writer_;
  std::unique_ptr<XXH3_state_t, FreeHash> hash_;
  std::vector<std::byte> buffer_;
};

CacheWriter::CacheWriter(host::Disk& disk, std::string path, CacheWriterOptions options)
    : disk_(disk),
      path_(std::move(path)),
      temporary_(path_ + ".tmp"),
      options_(options),
      feature_begin_{0},
      label_begin_{0} {
  CHECK(std::has_single_bit(options.records_per_block) &&
            options.records_per_block <= cache::kMaxRecordsPerBlock,
        options.records_per_block);
}

CacheWriter::~CacheWriter() {
  file_.reset();
  // The caller that dropped the writer has the first error; a failing clean-up says nothing new.
  if (temporary_exists_) static_cast<void>(disk_.remove_all(temporary_).ok());
}

Result<std::unique_ptr<CacheWriter>> CacheWriter::create(host::Disk& disk, const std::string& path,
                                                         CacheWriterOptions options) {
  std::unique_ptr<CacheWriter> writer(new CacheWriter(disk, path, options));
  if (auto done = disk.make_directories(host::parent(path)); !done.ok()) return done.error();
  auto file = disk.open_writable(writer->temporary_, host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  writer->temporary_exists_ = true;
  writer->file_ = *std::move(file);
  cache::Header header{.magic = {}, .version = cache::kVersion, .reserved = 0};
  std::memcpy(header.magic, cache::kHeaderMagic.data(), sizeof header.magic);
  if (auto done = writer->append(bytes_of(header)); !done.ok()) return done.error();
  return writer;
}

Result<void> CacheWriter::append(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  return file_->append(bytes);
}

Result<void> CacheWriter::add(const Record& record) {
  const auto& [index, value] = record.features;
  CHECK(file_ != nullptr && index.size() == value.size(), index.size(), value.size());
  CHECK(increasing(index), records_);
  CHECK(increasing(record.labels), records_);
  CHECK(finite(value), records_);
  if (feature_.size() + index.size() > kMaxBlockEntries ||
      label_.size() + record.labels.size() > kMaxBlockEntries) {
    return Error{
        .kind = ErrorKind::kBadData,
        .what = "the records are too long for the cache",
        .got = fmt::format("more than {} entries in {} records", kMaxBlockEntries, feature_begin_.size()),
        .expected = "fewer"};
  }
  if (!index.empty())
    features_seen_ = std::max<std::uint64_t>(features_seen_, std::uint64_t{index.back()} + 1);
  if (!record.labels.empty()) {
    labels_seen_ = std::max<std::uint64_t>(labels_seen_, std::uint64_t{record.labels.back()} + 1);
  }
  feature_.insert(feature_.end(), index.begin(), index.end());
  value_.insert(value_.end(), value.begin(), value.end());
  label_.insert(label_.end(), record.labels.begin(), record.labels.end());
  feature_begin_.push_back(static_cast<std::uint32_t>(feature_.size()));
  label_begin_.push_back(static_cast<std::uint32_t>(label_.size()));
  ++records_;
  return feature_begin_.size() - 1 < options_.records_per_block ? Result<void>() : flush_block();
}

Result<void> CacheWriter::flush_block() {
  const cache::BlockHeader header{.records = static_cast<std::uint32_t>(feature_begin_.size() - 1),
                                  .feature_entries = static_cast<std::uint32_t>(feature_.size()),
                                  .label_entries = static_cast<std::uint32_t>(label_.size()),
                                  .reserved = 0};
  if (header.records == 0) return {};
  scratch_.clear();
  const auto head = bytes_of(header);
  scratch_.insert(scratch_.end(), head.begin(), head.end());
  put(scratch_, feature_begin_);
  put(scratch_, label_begin_);
  put(scratch_, feature_);
  put(scratch_, value_);
  put(scratch_, label_);
  scratch_.resize(cache::padded(scratch_.size()));
  blocks_.push_back({.offset = offset_,
                     .bytes = scratch_.size(),
                     .checksum = XXH3_64bits(scratch_.data(), scratch_.size())});
  feature_entries_ += feature_.size();
  label_entries_ += label_.size();
  feature_begin_.resize(1);
  label_begin_.resize(1);
  feature_.clear();
  value_.clear();
  label_.clear();
  return append(scratch_);
}

Result<void> CacheWriter::finish(const CacheShape& shape) {
  CHECK(file_ != nullptr);
  CHECK(features_seen_ <= shape.features, features_seen_, shape.features);
  CHECK(labels_seen_ <= shape.labels, labels_seen_, shape.labels);
  CHECK(shape.feature_names.empty() || shape.feature_names.size() == shape.features,
        shape.feature_names.size());
  CHECK(shape.label_names.empty() || shape.label_names.size() == shape.labels, shape.label_names.size());
  if (auto done = flush_block(); !done.ok()) return done;
  if (auto done = write_footer(shape); !done.ok()) return done;
  return publish();
}

Result<void> CacheWriter::write_footer(const CacheShape& shape) {
  cache::Trailer trailer{.magic = {},
                         .version = cache::kVersion,
                         .records_per_block = options_.records_per_block,
                         .records = records_,
                         .feature_entries = feature_entries_,
                         .label_entries = label_entries_,
                         .features = shape.features,
                         .labels = shape.labels,
                         .flags = (shape.label_names.empty() ? 0 : cache::kHasLabelNames) |
                                  (shape.feature_names.empty() ? 0 : cache::kHasFeatureNames),
                         .reserved = 0,
                         .blocks = blocks_.size(),
                         .footer_offset = offset_,
                         .footer_bytes = 0,
                         .footer_checksum = 0,
                         .trailer_checksum = 0};
  std::memcpy(trailer.magic, cache::kTrailerMagic.data(), sizeof trailer.magic);
  Footer footer(*this);
  if (auto done = footer.put(std::as_bytes(std::span(blocks_))); !done.ok()) return done;
  if (!shape.label_names.empty()) {
    if (auto done = footer.put_names(shape.label_names); !done.ok()) return done;
  }
  if (!shape.feature_names.empty()) {
    if (auto done = footer.put_names(shape.feature_names); !done.ok()) return done;
  }
  if (auto done = footer.flush(); !done.ok()) return done;
  trailer.footer_bytes = offset_ - trailer.footer_offset;
  trailer.footer_checksum = footer.checksum();
  trailer.trailer_checksum = XXH3_64bits(&trailer, offsetof(cache::Trailer, trailer_checksum));
  return append(bytes_of(trailer));
}

Result<void> CacheWriter::publish() {
  if (auto done = file_->sync(); !done.ok()) return done;
  if (auto done = file_->close(); !done.ok()) return done;
  file_.reset();
  if (auto done = disk_.rename(temporary_, path_); !done.ok()) return done;
  temporary_exists_ = false;
  return disk_.sync_directory(host::parent(path_));
}

}  // namespace gossamer::data
