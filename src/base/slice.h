// SPDX-License-Identifier: Apache-2.0
//
// Slice: bytes shared by reference. They are never copied, and never changed once a slice looks at them. A
// tensor may be sent to three peers, kept for a resend and cut into pieces: it lies in memory once. The last
// slice that looks at it frees it.
//
// Slices is a run of bytes in parts: a frame, a message's payload. Where one part ends and the next begins
// means nothing, and a network may cut anew.
//
// Thread rule: plain values; slices of the same memory may live in several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gossamer {

class Slice {
 public:
  Slice() = default;
  // `owner` keeps `bytes` alive. The caller promises that nobody writes to them any more.
  Slice(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  // A slice of new memory with the same content.
  [[nodiscard]] static Slice copy_of(std::span<const std::byte> bytes);
  [[nodiscard]] static Slice of(std::string text);
  [[nodiscard]] static Slice of(std::vector<std::byte> bytes);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  // The same memory, fewer bytes. Requires offset + count <= size().
  [[nodiscard]] Slice part(std::size_t offset, std::size_t count) const;

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

using Slices = std::vector<Slice>;

[[nodiscard]] std::uint64_t total_bytes(const Slices& slices);

// Fills `out` from the front of `slices`. Requires total_bytes(slices) >= out.size().
void copy_front(const Slices& slices, std::span<std::byte> out);

// Everything in one piece of memory, for tests and small messages.
[[nodiscard]] std::string joined(const Slices& slices);

// Takes bytes from the front of a run of slices: take() shares them, read() copies them into the caller's
// memory.
class SliceReader {
 public:
  explicit SliceReader(Slices slices);

  [[nodiscard]] std::uint64_t left() const { return left_; }
  // The next `count` bytes. Requires count <= left().
  [[nodiscard]] Slices take(std::uint64_t count);
  // The next out.size() bytes, as a copy. Requires out.size() <= left().
  void read(std::span<std::byte> out);

 private:
  Slices slices_;
  std::size_t next_ = 0;    // the slice to take from
  std::size_t offset_ = 0;  // bytes of it that are gone
  std::uint64_t left_ = 0;
};

}  // namespace gossamer
