// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_array.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gossamer {
namespace {

// Small and large arrays start on the promised boundary and hold zeros up to the last element.
TEST(AlignedArray, IsAlignedAndZeroed) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{15}, std::size_t{4097}, std::size_t{3} << 20}) {
    AlignedArray<float> array(size);
    const std::size_t boundary = size * sizeof(float) >= (std::size_t{2} << 20) ? std::size_t{2} << 20 : 64;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % boundary, 0U) << size;
    EXPECT_EQ(array[0], 0.0F);
    EXPECT_EQ(array[size - 1], 0.0F);
    array[size - 1] = 1.0F;
    EXPECT_EQ(array.span().back(), 1.0F);
  }
}

// A moved-from array is empty; the elements stay where they were.
TEST(AlignedArray, MovesWithoutCopying) {
  AlignedArray<int> a(100);
  a[7] = 42;
  const int* place = a.data();
  AlignedArray<int> b = std::move(a);
  EXPECT_EQ(a.size(), 0U);  // NOLINT(bugprone-use-after-move): the moved-from state is part of the contract
  EXPECT_EQ(b.data(), place);
  EXPECT_EQ(b[7], 42);
  AlignedArray<int> empty;
  b = std::move(empty);
  EXPECT_EQ(b.size(), 0U);
}

}  // namespace
}  // namespace gossamer
