// SPDX-License-Identifier: Apache-2.0
#include "tensors/safetensors.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::tensors {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header + data;
}

Result<TensorMap> parse(const std::string& file) {
  return parse_safetensors("f", std::as_bytes(std::span(file)));
}

// A written file reads back: types, shapes, rows without their padding, empty tensors. Data starts on 64
// bytes, wider types come first, and the digest is the file's.
TEST(Safetensors, RoundTrip) {
  const std::vector<std::uint8_t> bytes = {1, 2, 3};
  const std::vector<std::uint64_t> wide = {~std::uint64_t{0}, 5};
  const std::vector<float> padded = {1, 2, -1, 3, 4, -1};  // rows of 2, 3 apart
  const std::vector<TensorSource> tensors = {vector_tensor<std::uint8_t>("bytes", DType::kU8, bytes),
                                             vector_tensor<std::uint64_t>("wide", DType::kU64, wide),
                                             {.name = "rows",
                                              .dtype = DType::kF32,
                                              .shape = {2, 2},
                                              .data = reinterpret_cast<const std::byte*>(padded.data()),
                                              .row_stride_bytes = 12},
                                             vector_tensor<float>("empty", DType::kF32, {})};
  host::SimDisk disk;
  auto file = disk.open_writable("f", host::WriteMode::kTruncate);
  ASSERT_TRUE(file.ok());
  const auto digest = write_safetensors(**file, tensors);
  ASSERT_TRUE(digest.ok());
  ASSERT_TRUE((*file)->close().ok());
  const auto text = host::read_text(disk, "f");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(digest->bytes, text->size());
  EXPECT_EQ(digest->xxh3, XXH3_64bits(text->data(), text->size()));
  const auto map = parse(*text);
  ASSERT_TRUE(map.ok()) << map.error().message();
  ASSERT_EQ(map->size(), 4U);
  const TensorView& rows = map->at("rows");
  EXPECT_EQ(rows.dtype, DType::kF32);
  EXPECT_EQ(rows.shape, (std::vector<std::uint64_t>{2, 2}));
  std::array<float, 4> values{};
  ASSERT_EQ(rows.bytes.size(), sizeof(values));
  std::memcpy(values.data(), rows.bytes.data(), sizeof(values));
  EXPECT_EQ(values, (std::array<float, 4>{1, 2, 3, 4}));
  EXPECT_EQ(map->at("empty").bytes.size(), 0U);
  const auto offset = [&](const char* name) {
    return map->at(name).bytes.data() - std::as_bytes(std::span(*text)).data();
  };
  EXPECT_EQ(offset("wide") % 64, 0);
  EXPECT_LT(offset("wide"), offset("rows"));
  EXPECT_LT(offset("rows"), offset("bytes"));
}

// Claim: every type has its name and size in a file, and reads back with its bytes.
TEST(Safetensors, EveryType) {
  const std::vector<std::pair<DType, std::string>> types = {
      {DType::kU8, "U8"},   {DType::kBf16, "BF16"}, {DType::kF16, "F16"}, {DType::kU32, "U32"},
      {DType::kF32, "F32"}, {DType::kU64, "U64"},   {DType::kI64, "I64"}, {DType::kF64, "F64"}};
  const std::vector<std::uint8_t> bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  std::vector<TensorSource> tensors;
  for (const auto& [dtype, word] : types) {
    EXPECT_EQ(name(dtype), word);
    tensors.push_back({.name = word,
                       .dtype = dtype,
                       .shape = {bytes.size() / size_of(dtype)},
                       .data = reinterpret_cast<const std::byte*>(bytes.data())});
  }
  host::SimDisk disk;
  auto file = disk.open_writable("f", host::WriteMode::kTruncate);
  ASSERT_TRUE(file.ok() && write_safetensors(**file, tensors).ok() && (*file)->close().ok());
  const auto text = host::read_text(disk, "f");
  const auto map = parse(*text);
  ASSERT_TRUE(map.ok()) << map.error().message();
  for (const auto& [dtype, word] : types) {
    EXPECT_NE(text->find("\"dtype\":\"" + word + "\""), std::string::npos) << word;
    EXPECT_EQ(map->at(word).dtype, dtype);
    EXPECT_TRUE(std::ranges::equal(map->at(word).bytes, std::as_bytes(std::span(bytes)))) << word;
  }
}

// Tensors longer than the write buffer read back, in one piece and in rows.
TEST(Safetensors, LargeTensors) {
  std::vector<float> values(700'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  host::SimDisk disk;
  auto file = disk.open_writable("f", host::WriteMode::kTruncate);
  ASSERT_TRUE(file.ok());
  const std::vector<TensorSource> tensors = {vector_tensor<float>("flat", DType::kF32, values),
                                             {.name = "rows",
                                              .dtype = DType::kF32,
                                              .shape = {70, 9'000},
                                              .data = reinterpret_cast<const std::byte*>(values.data()),
                                              .row_stride_bytes = 40'000}};
  ASSERT_TRUE(write_safetensors(**file, tensors).ok());
  const auto text = host::read_text(disk, "f");
  const auto map = parse(*text);
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE(std::ranges::equal(map->at("flat").bytes, std::as_bytes(std::span(values))));
  for (std::size_t r = 0; r < 70; ++r) {
    const auto row = std::as_bytes(std::span(values).subspan(r * 10'000, 9'000));
    ASSERT_TRUE(std::ranges::equal(map->at("rows").bytes.subspan(r * 36'000, 36'000), row));
  }
}

// Claim: a number that is not finite is found in each type that can have one, and is not written. Its tensor
// and place are named, also where the tensor is written in rows.
TEST(Safetensors, RefusesNumbersThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> floats = {0, -1, std::numeric_limits<float>::max(), -nan, 5};
  const std::vector<double> doubles = {1, 2, 3, -std::numeric_limits<double>::infinity()};
  const std::vector<std::uint16_t> halves = {0x7F7F, 0xFF7F, 0x0001, 0x7F80};
  TensorSource read = vector_tensor<float>("bad", DType::kF32, floats);
  read.read_row = [&floats](std::uint64_t row, std::span<std::byte> out) {
    std::memcpy(out.data(), &floats[row], sizeof(float));
  };
  const std::vector<TensorSource> bad = {vector_tensor<float>("bad", DType::kF32, floats),
                                         vector_tensor<double>("bad", DType::kF64, doubles),
                                         vector_tensor<std::uint16_t>("bad", DType::kBf16, halves),
                                         {.name = "bad",
                                          .dtype = DType::kF32,
                                          .shape = {2, 2},
                                          .data = reinterpret_cast<const std::byte*>(floats.data()),
                                          .row_stride_bytes = 8},
                                         read};
  for (const TensorSource& tensor : bad) {
    host::SimDisk disk;
    auto file = disk.open_writable("f", host::WriteMode::kTruncate);
    ASSERT_TRUE(file.ok());
    const auto written = write_safetensors(**file, std::span(&tensor, 1));
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(written.error().where, "tensor bad");
    EXPECT_EQ(written.error().got, "the one at 3");
  }
  EXPECT_FALSE(first_not_finite(DType::kF32, std::as_bytes(std::span(floats).first(3))));
  EXPECT_FALSE(first_not_finite(DType::kF64, std::as_bytes(std::span(doubles).first(3))));
  EXPECT_FALSE(first_not_finite(DType::kBf16, std::as_bytes(std::span(halves).first(3))));
  EXPECT_FALSE(first_not_finite(DType::kU32, std::as_bytes(std::span(floats))));
}

// Every broken rule of the format is refused as bad data.
TEST(Safetensors, RefusesMalformedFiles) {
  const auto one = [](const char* dtype, const char* shape, const char* offsets) {
    return std::string(R"({"a":{"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  EXPECT_TRUE(parse(file_of("{}", "")).ok());
  EXPECT_TRUE(parse(file_of(R"({"__metadata__":{"x":"y"}})", "")).ok());
  EXPECT_TRUE(parse(file_of(one("F32", "[2]", "[0,8]"), std::string(8, 'x'))).ok());
  EXPECT_TRUE(parse(file_of(one("F32", "[2,0]", "[0,0]"), "")).ok());
  EXPECT_TRUE(parse(file_of(one("U8", "[]", "[0,1]"), "x")).ok());
  EXPECT_TRUE(
      parse(file_of(R"({"__metadata__":)" + std::string(31, '[') + std::string(31, ']') + "}", "")).ok());
  const std::string data(8, 'x');
  const std::vector<std::string> bad = {
      "",
      "1234567",
      std::string(8, '\xff'),
      file_of("{", ""),
      file_of("[]", ""),
      file_of("{}", "x"),
      file_of(one("F8_E4M3", "[1]", "[0,8]"), data),
      file_of(one("F32", "[2]", "[0,9]"), data + "x"),
      file_of(one("F32", "[2]", "[1,9]"), data + "x"),
      file_of(one("F32", "[3]", "[0,12]"), data),
      file_of(one("F32", "[-2]", "[0,8]"), data),
      file_of(one("F32", "2", "[0,8]"), data),
      file_of(one("F32", "[2]", "[8,0]"), data),
      file_of(one("F32", "[2]", "[0]"), data),
      file_of(one("F32", "[4294967296,4294967296]", "[0,0]"), ""),
      file_of(one("F32", "[9223372036854775807]", "[0,8]"), data),
      file_of(R"({"a":3})", ""),
      file_of(R"({"__metadata__":)" + std::string(32, '[') + std::string(32, ']') + "}", ""),
      file_of(R"({"__metadata__":)" + std::string(400'000, '[') + std::string(400'000, ']') + "}", ""),
      file_of(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          "xyz"),
      file_of(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
          "xyz"),
  };
  for (const std::string& file : bad) {
    const auto map = parse(file);
    EXPECT_FALSE(map.ok()) << file;
    if (!map.ok()) {
      EXPECT_EQ(map.error().kind, ErrorKind::kBadData) << file;
    }
  }
}

}  // namespace
}  // namespace gossamer::tensors
