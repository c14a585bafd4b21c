// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/pieces_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "base/rng.h"
#include "learn/tokens/test_pieces_model.h"
#include "learn/tokens/tokenizer.h"

namespace gossamer::tokens {
namespace {

using test_pieces::bytes_field;
using test_pieces::number_field;
using test_pieces::pieces_model;
using test_pieces::TestModel;
using test_pieces::TestPiece;
using testing::HasSubstr;

// What is said of a model; nothing of one that is taken.
std::string said_of_bytes(const std::string& bytes) {
  const auto checked = checked_pieces_model(bytes, "their.model");
  if (checked.ok()) return "";
  EXPECT_EQ(checked.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(checked.error().where, "their.model");
  EXPECT_FALSE(checked.error().got.empty());
  EXPECT_FALSE(checked.error().expected.empty());
  EXPECT_FALSE(checked.error().fix.empty());
  return checked.error().message();
}
std::string said_of(const TestModel& model) { return said_of_bytes(pieces_model(model)); }
std::string said_of_piece(TestPiece piece) {
  TestModel model;
  model.pieces.push_back({.piece = "ab"});
  model.pieces.push_back(std::move(piece));
  return said_of(model);
}

// Claim: a model with pieces of words, control symbols and all bytes is taken, and so are the types that give
// text back.
TEST(PiecesModel, TakesWhatGivesTextBack) {
  for (const std::uint64_t type : {1, 2, 4}) EXPECT_EQ(said_of({.model_type = type}), "");
  EXPECT_EQ(said_of_piece({.piece = "\xE2\x96\x81 the", .score = -3.5F}), "");
  EXPECT_EQ(said_of_piece({.piece = "<s>", .type = 3}), "");
  EXPECT_EQ(said_of_piece({.piece = std::string(kMostPieceBytes, 'x')}), "");
}

// Claim: the library gets the same bytes whatever else a file has: unknown fields at any place are left out.
TEST(PiecesModel, TheLibraryGetsNothingThatIsNotKnown) {
  const auto plain = checked_pieces_model(pieces_model(), "m");
  ASSERT_TRUE(plain.ok());
  const std::string odd = number_field(77, 5) + bytes_field(200, "hidden");
  const auto more = checked_pieces_model(
      pieces_model({.more = odd + bytes_field(2, odd) + bytes_field(3, odd) + bytes_field(5, odd)}), "m");
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(*more, *plain);
  TestModel one;
  one.pieces.push_back({.piece = "ab"});
  const std::string piece = bytes_field(1, "ab") + test_pieces::float_field(2, 0) + number_field(3, 1);
  EXPECT_EQ(*checked_pieces_model(pieces_model({.more = bytes_field(1, piece + odd)}), "m"),
            *checked_pieces_model(pieces_model(one), "m"));
}

// Claim: what the library would believe or run, and what changes a text, is refused by name. A setting that
// is not there has SentencePiece's default.
TEST(PiecesModel, RefusesSettings) {
  EXPECT_THAT(said_of({.charsmap = "x"}), HasSubstr("normalization_rule_name=identity"));
  EXPECT_THAT(said_of({.denormal_charsmap = "x"}), HasSubstr("changes characters"));
  EXPECT_THAT(said_of({.add_dummy_prefix = true}), HasSubstr("add_dummy_prefix=false"));
  EXPECT_THAT(said_of({.add_dummy_prefix = {}}), HasSubstr("add_dummy_prefix=false"));
  EXPECT_THAT(said_of({.remove_extra_whitespaces = true}), HasSubstr("remove_extra_whitespaces=false"));
  EXPECT_THAT(said_of({.remove_extra_whitespaces = {}}), HasSubstr("remove_extra_whitespaces=false"));
  EXPECT_THAT(said_of({.self_test = ""}), HasSubstr("self_test"));
  EXPECT_THAT(said_of({.byte_fallback = false}), HasSubstr("byte_fallback"));
  EXPECT_THAT(said_of({.model_type = 0}), HasSubstr("model_type 0"));
  EXPECT_THAT(said_of({.model_type = 3}), HasSubstr("unigram, bpe or char"));
  EXPECT_THAT(said_of({.model_type = 5}), HasSubstr("model_type 5"));
  EXPECT_THAT(said_of({.model_type = ~std::uint64_t{0}}), HasSubstr("model_type -1"));
}

// Claim: pieces that cannot be are refused with their number, and so are types that the library might trip
// over.
TEST(PiecesModel, RefusesPieces) {
  EXPECT_THAT(said_of_piece({.piece = ""}), HasSubstr("piece 258: 0 bytes"));
  EXPECT_THAT(said_of_piece({.piece = std::string(kMostPieceBytes + 1, 'x')}), HasSubstr("1025 bytes"));
  EXPECT_THAT(said_of_piece({.piece = "\xFF"}), HasSubstr("no text"));
  EXPECT_THAT(said_of_piece({.piece = std::string("a\0b", 3)}), HasSubstr("no text"));
  for (const float score : {HUGE_VALF, -HUGE_VALF, std::nanf("")})
    EXPECT_THAT(said_of_piece({.piece = "x", .score = score}), HasSubstr("score"));
  EXPECT_THAT(said_of_piece({.piece = "ab"}), HasSubstr("earlier piece"));
  EXPECT_THAT(said_of_piece({.piece = "<0x41>"}), HasSubstr("earlier piece"));
  EXPECT_THAT(said_of_piece({.piece = "<0x4a>", .type = 6}), HasSubstr("for a byte"));
  EXPECT_THAT(said_of_piece({.piece = "<unk2>", .type = 2}), HasSubstr("2 unknown pieces"));
  EXPECT_THAT(said_of_piece({.piece = "x", .type = 4}), HasSubstr("user has defined"));
  for (const int type : {-1, 0, 5, 7})
    EXPECT_THAT(said_of_piece({.piece = "x", .type = type}), HasSubstr("type"));
  TestModel few;
  few.pieces.erase(few.pieces.begin() + 1 + 0xC7);
  EXPECT_THAT(said_of(few), HasSubstr("0xC7"));
  few = {};
  few.pieces.erase(few.pieces.begin());
  EXPECT_THAT(said_of(few), HasSubstr("0 unknown pieces"));
  EXPECT_THAT(said_of({.pieces = {}}), HasSubstr("no pieces"));
}

// Claim: a model has room for the tokens that are not its pieces, and one more piece is too many.
TEST(PiecesModel, HasABoundOfPieces) {
  const std::size_t all = kMostVocabulary - 2 - 257;
  std::string pieces;
  for (std::size_t i = 0; i < all; ++i) {
    pieces += "\n\6\n\4";
    for (std::size_t rest = i, digit = 0; digit < 4; ++digit, rest /= 64)
      pieces += static_cast<char>('0' + rest % 64);
  }
  EXPECT_EQ(said_of({.more = pieces}), "");
  EXPECT_THAT(said_of({.more = pieces + bytes_field(1, bytes_field(1, "one more"))}),
              HasSubstr("too many pieces"));
  // They are counted before they are parsed, whatever they are. A group, which would hide them, is in no
  // model.
  std::string empty;
  for (std::size_t i = 0; i < kMostVocabulary; ++i) empty += std::string("\n\0", 2);
  EXPECT_THAT(said_of({.more = empty}), HasSubstr("too many pieces"));
  EXPECT_THAT(said_of_bytes("\x0b\x0c" + empty), HasSubstr("no model"));
  EXPECT_THAT(said_of({.more = "\x0b\x0c"}), HasSubstr("no model"));
}

// Claim: bytes that are no model, a model that is cut off anywhere but behind a whole field, and random
// damage never pass for one that has other pieces: they are refused, or what the library gets is a checked
// model.
TEST(PiecesModel, TakesNoDamage) {
  const std::string good = pieces_model();
  for (const std::string& bytes : {std::string(), std::string("no model"), std::string(100, '\xFF')})
    EXPECT_NE(said_of_bytes(bytes), "");
  // Without the settings behind them the pieces are not taken: defaults change white space.
  for (std::size_t size = 0; size + 20 < good.size(); size += 7)
    EXPECT_NE(said_of_bytes(good.substr(0, size)), "");
  Rng rng(4, Purpose::kTest);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    bytes[rng.below(bytes.size())] ^= static_cast<char>(1U << rng.below(8));
    const auto checked = checked_pieces_model(bytes, "m");
    if (!checked.ok()) continue;
    // What has passed passes again as it is.
    EXPECT_EQ(*checked_pieces_model(*checked, "m"), *checked);
  }
}

}  // namespace
}  // namespace gossamer::tokens
