// SPDX-License-Identifier: Apache-2.0
//
// A fuzzer's bytes as an opened file. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "learn/data/read/byte_source.h"

namespace gossamer::fuzz {

class BytesFile final : public host::SequentialFile {
 public:
  explicit BytesFile(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    const std::size_t size = std::min(out.size(), rest_.size());
    if (size > 0) std::memcpy(out.data(), rest_.data(), size);
    rest_ = rest_.subspan(size);
    return size;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

// Null if the bytes are an archive that is refused at the start.
inline std::unique_ptr<data::ByteSource> open(std::span<const std::uint8_t> bytes) {
  auto source = data::unpack(std::make_unique<BytesFile>(bytes), "fuzz");
  if (source.ok()) return *std::move(source);
  CHECK(source.error().kind == ErrorKind::kBadData);
  return nullptr;
}

}  // namespace gossamer::fuzz
