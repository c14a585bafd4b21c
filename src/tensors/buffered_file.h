// SPDX-License-Identifier: Apache-2.0
//
// BufferedFile: gathers small pieces for a WritableFile, which hands every append to the system at once.
//
// Owner and thread: one. The file must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::tensors {

class BufferedFile {
 public:
  explicit BufferedFile(host::WritableFile& file) : file_(file) { buffer_.reserve(kBufferBytes); }

  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kBufferBytes) {
      if (auto flushed = flush(); !flushed.ok()) return flushed;
    }
    appended_ += bytes.size();
    if (bytes.size() > kBufferBytes) return file_.append(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  [[nodiscard]] Result<void> append(std::string_view text) {
    return append(std::as_bytes(std::span(text.data(), text.size())));
  }
  // Writes the buffer. Call it last: bytes still in the buffer when the object dies are lost.
  [[nodiscard]] Result<void> flush() {
    if (buffer_.empty()) return {};
    auto done = file_.append(buffer_);
    buffer_.clear();
    return done;
  }
  // Bytes appended so far.
  [[nodiscard]] std::uint64_t appended() const { return appended_; }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

  host::WritableFile& file_;
  std::vector<std::byte> buffer_;
  std::uint64_t appended_ = 0;
};

}  // namespace gossamer::tensors
