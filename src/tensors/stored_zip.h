// SPDX-License-Identifier: Apache-2.0
//
// StoredZip: a zip archive of uncompressed files, written front to back (PKWARE APPNOTE 6.3.10, sections
// 4.3.7, 4.3.12, 4.3.14-16 and 4.5.3). Sizes and offsets are always in zip64 fields, so a file of 5 GB takes
// the same path as a file of 5 bytes. Contents start on multiples of 64 bytes, as memory-mapping readers want
// them. There are no time stamps: the same contents give the same archive.
//
// This is our own code because of the writers in Debian. They either seek back to fill in checksums (minizip)
// or bring an XML parser and Unicode tables along (libarchive). None aligns the contents.
//
// Owner and thread: one. The file must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"
#include "tensors/buffered_file.h"

namespace gossamer::tensors {

// Bytes in memory: `rows` pieces of `row_bytes`, whose beginnings are `stride_bytes` apart.
struct ByteRows {
  const std::byte* data = nullptr;
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t stride_bytes = 0;
};

class StoredZip {
 public:
  explicit StoredZip(host::WritableFile& file) : out_(file) {}

  // Adds a file, reading its bytes twice: for the checksum, and to write them. Names must differ, be ASCII
  // and shorter than 64 KiB.
  [[nodiscard]] Result<void> add(std::string_view name, const ByteRows& content);
  [[nodiscard]] Result<void> add(std::string_view name, std::string_view content);
  // Writes the directory; nothing may be added after it. Neither syncs nor closes the file.
  [[nodiscard]] Result<void> finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // of the local header
  };

  BufferedFile out_;
  std::vector<Entry> entries_;
};

}  // namespace gossamer::tensors
