// SPDX-License-Identifier: Apache-2.0
//
// CachedDataset: a dataset cache file (docs/protocols/dataset-cache.md) mapped into memory. open() checks
// every checksum and every invariant of rows.h, in parallel; afterwards no access needs a check, whatever was
// in the file. Errors: those of the disk; kBadData for a file that is damaged, cut off or no cache at all.
//
// Thread rule: immutable after open(), any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "host/api/compute.h"
#include "host/api/disk.h"
#include "learn/data/cache_format.h"
#include "learn/data/dataset.h"

namespace gossamer::data {

class CachedDataset final : public Dataset {
 public:
  // `compute` is used only during the call.
  [[nodiscard]] static Result<std::unique_ptr<CachedDataset>> open(host::Disk& disk, const std::string& path,
                                                                   host::Compute& compute);
  // The same for a file that is mapped already; `name` is for messages.
  [[nodiscard]] static Result<std::unique_ptr<CachedDataset>> open(std::unique_ptr<host::MappedFile> file,
                                                                   const std::string& name,
                                                                   host::Compute& compute);

  [[nodiscard]] std::uint64_t size() const override { return trailer_.records; }
  [[nodiscard]] std::uint32_t features() const override { return trailer_.features; }
  [[nodiscard]] std::uint32_t labels() const override { return trailer_.labels; }
  [[nodiscard]] std::uint64_t feature_entries() const override { return trailer_.feature_entries; }
  [[nodiscard]] std::uint64_t label_entries() const override { return trailer_.label_entries; }
  [[nodiscard]] Record record(RecordIndex i) const override;

  // Covers the whole file: it tells these records, in this order and with these names, from others.
  [[nodiscard]] std::uint64_t checksum() const { return trailer_.trailer_checksum; }

  [[nodiscard]] std::string_view label_name(std::uint32_t label) const override;
  [[nodiscard]] std::string_view feature_name(std::uint32_t feature) const override;
  [[nodiscard]] bool has_label_names() const override { return !label_names_.offset.empty(); }
  [[nodiscard]] bool has_feature_names() const override { return !feature_names_.offset.empty(); }

 private:
  explicit CachedDataset(std::unique_ptr<host::MappedFile> file) : file_(std::move(file)) {}

  std::unique_ptr<host::MappedFile> file_;
  cache::Trailer trailer_ = {};
  std::span<const cache::BlockEntry> blocks_;
  unsigned block_shift_ = 0;  // log2 of records_per_block
  cache::Names label_names_;
  cache::Names feature_names_;
};

}  // namespace gossamer::data
