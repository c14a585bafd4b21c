// SPDX-License-Identifier: Apache-2.0
//
// Bytes of models of SentencePiece, for tests: right ones and others.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer::tokens::test_pieces {

struct TestPiece {
  std::string piece;
  float score = 0;
  int type = 1;  // 2 unknown, 3 control, 4 of a user, 5 unused, 6 of a byte
};

// The unknown piece, and those of the bytes.
inline std::vector<TestPiece> byte_pieces() {
  std::vector<TestPiece> all = {{.piece = "<unk>", .type = 2}};
  for (int byte = 0; byte < 256; ++byte) all.push_back({.piece = fmt::format("<0x{:02X}>", byte), .type = 6});
  return all;
}

struct TestModel {
  std::vector<TestPiece> pieces = byte_pieces();
  std::uint64_t model_type = 2;  // bpe
  bool byte_fallback = true;
  std::string name = "identity";
  std::string charsmap = {};
  std::optional<bool> add_dummy_prefix = false;
  std::optional<bool> remove_extra_whitespaces = false;
  std::string denormal_charsmap = {};
  std::optional<std::string> self_test = {};
  std::string more = {};  // bytes behind all
};

// Fields of protobuf.
inline std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number > 127; number >>= 7U) bytes += static_cast<char>(number | 128U);
  return bytes + static_cast<char>(number);
}
inline std::string number_field(std::uint64_t field, std::uint64_t number) {
  return varint(field << 3U) + varint(number);
}
inline std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return varint((field << 3U) | 2U) + varint(bytes.size()) + std::string(bytes);
}
inline std::string float_field(std::uint64_t field, float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  std::string bytes = varint((field << 3U) | 5U);
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift);
  return bytes;
}

inline std::string pieces_model(const TestModel& model = {}) {
  std::string bytes;
  for (const TestPiece& piece : model.pieces) {
    bytes += bytes_field(1, bytes_field(1, piece.piece) + float_field(2, piece.score) +
                                number_field(3, static_cast<std::uint64_t>(piece.type)));
  }
  bytes += bytes_field(2, number_field(3, model.model_type) + number_field(35, model.byte_fallback ? 1 : 0));
  std::string normal = bytes_field(1, model.name) + bytes_field(2, model.charsmap);
  if (model.add_dummy_prefix) normal += number_field(3, *model.add_dummy_prefix ? 1 : 0);
  if (model.remove_extra_whitespaces) normal += number_field(4, *model.remove_extra_whitespaces ? 1 : 0);
  bytes += bytes_field(3, normal);
  if (model.self_test) bytes += bytes_field(4, *model.self_test);
  bytes += bytes_field(5, bytes_field(2, model.denormal_charsmap));
  return bytes + model.more;
}

}  // namespace gossamer::tokens::test_pieces
