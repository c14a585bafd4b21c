// SPDX-License-Identifier: Apache-2.0
#include "base/slice.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace gossamer {

Slice Slice::copy_of(std::span<const std::byte> bytes) {
  return of(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

Slice Slice::of(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  const auto bytes = std::as_bytes(std::span(owner->data(), owner->size()));
  return {std::move(owner), bytes};
}

Slice Slice::of(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> all(*owner);
  return {std::move(owner), all};
}

Slice Slice::part(std::size_t offset, std::size_t count) const {
  CHECK(offset <= size() && count <= size() - offset, offset, count, size());
  return {owner_, bytes_.subspan(offset, count)};
}

std::uint64_t total_bytes(const Slices& slices) {
  std::uint64_t total = 0;
  for (const Slice& slice : slices) total += slice.size();
  return total;
}

void copy_front(const Slices& slices, std::span<std::byte> out) {
  for (const Slice& slice : slices) {
    if (out.empty()) return;
    const std::size_t count = std::min(slice.size(), out.size());
    if (count > 0) std::memcpy(out.data(), slice.bytes().data(), count);
    out = out.subspan(count);
  }
  CHECK(out.empty(), out.size());
}

std::string joined(const Slices& slices) {
  std::string text(total_bytes(slices), '\0');
  copy_front(slices, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

SliceReader::SliceReader(Slices slices) : slices_(std::move(slices)), left_(total_bytes(slices_)) {}

Slices SliceReader::take(std::uint64_t count) {
  CHECK(count <= left_, count, left_);
  left_ -= count;
  Slices taken;
  while (count > 0) {
    Slice& slice = slices_[next_];
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, slice.size() - offset_));
    if (part > 0) taken.push_back(slice.part(offset_, part));
    count -= part;
    offset_ += part;
    if (offset_ < slice.size()) continue;
    slice = {};  // its memory may go as soon as the parts taken from it are let go
    ++next_;
    offset_ = 0;
  }
  return taken;
}

void SliceReader::read(std::span<std::byte> out) {
  CHECK(out.size() <= left_, out.size(), left_);
  left_ -= out.size();
  while (!out.empty()) {
    Slice& slice = slices_[next_];
    const std::size_t part = std::min(out.size(), slice.size() - offset_);
    if (part > 0) std::memcpy(out.data(), slice.bytes().data() + offset_, part);
    out = out.subspan(part);
    offset_ += part;
    if (offset_ < slice.size()) continue;
    slice = {};
    ++next_;
    offset_ = 0;
  }
}

}  // namespace gossamer
