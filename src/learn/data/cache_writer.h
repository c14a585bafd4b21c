// SPDX-License-Identifier: Apache-2.0
//
// CacheWriter: writes a dataset cache (docs/protocols/dataset-cache.md) record by record, in bounded memory.
// The file appears under its name only at the end of finish(), whole and synced. Until then, and after any
// error, what was there before stays.
//
//   auto writer = CacheWriter::create(disk, "runs/x/data/train.cache");
//   ... (*writer)->add(record) ...
//   (*writer)->finish({.features = 5000, .labels = 159});
//
// Owner and thread: one. Memory: one block of records, plus 24 bytes per finished block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/data/cache_format.h"
#include "learn/data/rows.h"

namespace gossamer::data {

struct CacheWriterOptions {
  // A power of two, at most 2^20.
  std::uint32_t records_per_block = 256;
};

// The shape of the dataset, which is known only at the end. Names: none, or exactly one per feature or label.
struct CacheShape {
  std::uint32_t features = 0;  // every index must be below
  std::uint32_t labels = 0;
  std::span<const std::string_view> feature_names = {};
  std::span<const std::string_view> label_names = {};
};

class CacheWriter {
 public:
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;
  // Removes the temporary file if finish() did not succeed.
  ~CacheWriter();

  // Makes the parent directories too.
  [[nodiscard]] static Result<std::unique_ptr<CacheWriter>> create(host::Disk& disk, const std::string& path,
                                                                   CacheWriterOptions options = {});

  // Requires the invariants of rows.h (checked).
  [[nodiscard]] Result<void> add(const Record& record);
  // Requires every index added so far to be within the shape (checked). No call may follow.
  [[nodiscard]] Result<void> finish(const CacheShape& shape);

 private:
  class Footer;

  CacheWriter(host::Disk& disk, std::string path, CacheWriterOptions options);
  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> flush_block();
  [[nodiscard]] Result<void> write_footer(const CacheShape& shape);
  [[nodiscard]] Result<void> publish();

  host::Disk& disk_;
  std::string path_;
  std::string temporary_;
  CacheWriterOptions options_;
  std::unique_ptr<host::WritableFile> file_;
  bool temporary_exists_ = false;

  // The open block.
  std::vector<std::uint32_t> feature_begin_;
  std::vector<std::uint32_t> label_begin_;
  std::vector<std::uint32_t> feature_;
  std::vector<float> value_;
  std::vector<std::uint32_t> label_;
  std::vector<std::byte> scratch_;

  std::vector<cache::BlockEntry> blocks_;
  std::uint64_t offset_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t feature_entries_ = 0;
  std::uint64_t label_entries_ = 0;
  std::uint64_t features_seen_ = 0;  // largest index + 1
  std::uint64_t labels_seen_ = 0;
};

}  // namespace gossamer::data
