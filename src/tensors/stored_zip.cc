// SPDX-License-Identifier: Apache-2.0
#include "tensors/stored_zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace gossamer::tensors {
namespace {

constexpr std::uint64_t kZipAlignment = 64;
constexpr std::uint64_t kLocalHeaderBytes = 30;
constexpr std::uint16_t kZip64Version = 45;
constexpr std::uint16_t kZip64Field = 0x0001;
constexpr std::uint16_t kPaddingField = 0x4246;  // an id that PyTorch's own writer uses for the same purpose
constexpr std::uint16_t kDosEpoch = 0x0021;      // 1980-01-01
constexpr std::uint32_t kIn64Field = 0xFFFF'FFFF;

// Numbers back to back, little-endian.
class Fields {
 public:
  Fields& u16(std::uint64_t value) { return put(value, 2); }
  Fields& u32(std::uint64_t value) { return put(value, 4); }
  Fields& u64(std::uint64_t value) { return put(value, 8); }
  Fields& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  Fields& put(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

std::uint32_t checksum(const ByteRows& content) {
  uLong crc = crc32(0, nullptr, 0);
  for (std::uint64_t row = 0; row < content.rows; ++row) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(content.data + row * content.stride_bytes),
                  content.row_bytes);
  }
  return static_cast<std::uint32_t>(crc);
}

// A field of zeros that aligns its own end; it begins at `end`, and its head has 4 bytes.
std::string padding_field(std::uint64_t end) {
  const std::uint64_t zeros = (kZipAlignment - (end + 4) % kZipAlignment) % kZipAlignment;
  return Fields().u16(kPaddingField).u16(zeros).text(std::string(zeros, '\0')).bytes();
}

}  // namespace

Result<void> StoredZip::add(std::string_view name, const ByteRows& content) {
  CHECK(name.size() <= std::numeric_limits<std::uint16_t>::max(), name.size());
  CHECK(std::ranges::none_of(entries_, [&](const Entry& each) { return each.name == name; }), name);
  const Entry entry{.name = std::string(name),
                    .crc = checksum(content),
                    .size = content.rows * content.row_bytes,
                    .offset = out_.appended()};
  const std::string sizes = Fields().u16(kZip64Field).u16(16).u64(entry.size).u64(entry.size).bytes();
  const std::string extra =
      sizes + padding_field(entry.offset + kLocalHeaderBytes + name.size() + sizes.size());
  Fields header;
  header.text("PK\x03\x04").u16(kZip64Version).u16(0).u16(0);  // no flags, stored
  header.u16(0).u16(kDosEpoch).u32(entry.crc).u32(kIn64Field).u32(kIn64Field);
  header.u16(name.size()).u16(extra.size()).text(name).text(extra);
  if (auto done = out_.append(header.bytes()); !done.ok()) return done;
  for (std::uint64_t row = 0; row < content.rows; ++row) {
    const std::span bytes(content.data + row * content.stride_bytes, content.row_bytes);
    if (auto done = out_.append(bytes); !done.ok()) return done;
  }
  entries_.push_back(entry);
  return {};
}

Result<void> StoredZip::add(std::string_view name, std::string_view content) {
  return add(name, {.data = reinterpret_cast<const std::byte*>(content.data()),
                    .rows = 1,
                    .row_bytes = content.size(),
                    .stride_bytes = content.size()});
}

Result<void> StoredZip::finish() {
  const std::uint64_t begin = out_.appended();
  for (const Entry& entry : entries_) {
    const std::string extra =
        Fields().u16(kZip64Field).u16(24).u64(entry.size).u64(entry.size).u64(entry.offset).bytes();
    Fields header;
    header.text("PK\x01\x02").u16(kZip64Version).u16(kZip64Version).u16(0).u16(0);
    header.u16(0).u16(kDosEpoch).u32(entry.crc).u32(kIn64Field).u32(kIn64Field);
    header.u16(entry.name.size()).u16(extra.size()).u16(0).u16(0).u16(0).u32(0).u32(kIn64Field);
    if (auto done = out_.append(header.text(entry.name).text(extra).bytes()); !done.ok()) return done;
  }
  const std::uint64_t end = out_.appended();
  Fields tail;
  tail.text("PK\x06\x06").u64(44).u16(kZip64Version).u16(kZip64Version).u32(0).u32(0);
  tail.u64(entries_.size()).u64(entries_.size()).u64(end - begin).u64(begin);
  tail.text(std::string_view("PK\x06\x07")).u32(0).u64(end).u32(1);
  tail.text("PK\x05\x06").u16(0).u16(0).u16(0xFFFF).u16(0xFFFF).u32(kIn64Field).u32(kIn64Field).u16(0);
  if (auto done = out_.append(tail.bytes()); !done.ok()) return done;
  return out_.flush();
}

}  // namespace gossamer::tensors
