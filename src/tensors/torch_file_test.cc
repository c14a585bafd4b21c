// SPDX-License-Identifier: Apache-2.0
#include "tensors/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::tensors {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using std::string_view_literals::operator""sv;

// Claim: a size of 2^31 or more is written in nine bytes. Pickle's four bytes have a sign, and would make it
// negative. (A tensor without columns has any number of rows, and no bytes.)
TEST(TorchFile, LargeSizesAreNotNegative) {
  host::SimDisk disk;
  auto file = disk.open_writable("f", host::WriteMode::kTruncate);
  ASSERT_TRUE(file.ok());
  const std::array<TensorSource, 2> tensors = {
      {{.name = "small", .dtype = DType::kU8, .shape = {0x7FFF'FFFF, 0}},
       {.name = "large", .dtype = DType::kU8, .shape = {0x8000'0000, 0}}}};
  ASSERT_TRUE(write_torch_file(**file, {.tensors = tensors, .lists = {}, .strings = {}}).ok());
  ASSERT_TRUE((*file)->close().ok());
  const std::string text = *host::read_text(disk, "f");
  EXPECT_THAT(text, HasSubstr("J\xFF\xFF\xFF\x7F"sv));
  EXPECT_THAT(text, HasSubstr("\x8A\x09\x00\x00\x00\x80\x00\x00\x00\x00\x00"sv));
  EXPECT_THAT(text, Not(HasSubstr("J\x00\x00\x00\x80"sv)));
}

}  // namespace
}  // namespace gossamer::tensors
