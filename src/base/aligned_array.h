// SPDX-License-Identifier: Apache-2.0
//
// AlignedArray<T>: a fixed-size zeroed array for tensors. It starts on a 64-byte boundary (a cache line, a
// vector register). An array of 2 MiB or more starts on a 2 MiB boundary and asks the kernel for huge pages.
// The engines touch rows scattered over gigabytes, and with small pages they would spend their time on
// address translation. The pages of such a large array are not touched at construction: the threads that fill
// it touch them first.
//
// Owner: one; the array moves, never copies. Thread rule: as for the elements.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace gossamer {

namespace aligned_detail {
struct Free {
  void operator()(void* memory) const;
};
// Zeroed bytes; aborts when the machine has no memory left (sizes are checked against it beforehand).
[[nodiscard]] void* allocate(std::size_t bytes);
}  // namespace aligned_detail

template <class T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t size)
      : data_(static_cast<T*>(aligned_detail::allocate(size * sizeof(T)))), size_(size) {}
  AlignedArray(AlignedArray&& other) noexcept : data_(std::move(other.data_)), size_(other.size_) {
    other.size_ = 0;
  }
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = other.size_;
    other.size_ = 0;
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }
  [[nodiscard]] T& operator[](std::size_t i) { return data_.get()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return data_.get()[i]; }
  [[nodiscard]] std::span<T> span() { return {data_.get(), size_}; }
  [[nodiscard]] std::span<const T> span() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<T, aligned_detail::Free> data_;
  std::size_t size_ = 0;
};

}  // namespace gossamer
