// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/pieces_model.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <gossamer/pieces.pb.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/printable.h"
#include "learn/text/words.h"
#include "learn/tokens/sentencepiece_tokenizer.h"

namespace gossamer::tokens {
namespace {

using wire::PiecesModel;

// SentencePiece's numbers of the types of pieces.
enum PieceType : int { kNormal = 1, kUnknown = 2, kControl = 3, kOfUser = 4, kUnused = 5, kOfByte = 6 };
// unigram, bpe, char. Models of whole words (3) write a space before an unknown word as three other bytes.
constexpr std::array<int, 3> kModelTypes = {1, 2, 4};

constexpr std::string_view kTrainAnew =
    "have one trained on the text (sentencepiece), or train it anew by spm_train with "
    "--normalization_rule_name=identity --add_dummy_prefix=false --remove_extra_whitespaces=false "
    "--byte_fallback=true, and without --user_defined_symbols and --self_test_sample_size";
constexpr std::string_view kGetAgain =
    "get the file again from where it is whole, or have one trained on the text";

// What is wrong with a model.
struct ModelFault {
  std::string what;
  std::string got;
  std::string expected;
  std::string_view fix = kTrainAnew;
};

// The byte of "<0x41>", as the library writes it.
std::optional<std::uint8_t> byte_of_name(std::string_view piece) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  const std::size_t high = kDigits.find(piece[3]);
  const std::size_t low = kDigits.find(piece[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint8_t>(high * 16 + low);
}

// The pieces of a model, one after the other.
class PieceChecker {
 public:
  std::optional<ModelFault> check(const PiecesModel::Piece& piece, int id) {
    const std::string& bytes = piece.piece();
    const auto damaged = [&](std::string got, std::string expected) {
      return ModelFault{.what = "a piece of this model of SentencePiece cannot be",
                        .got = fmt::format("piece {}: {}", id, std::move(got)),
                        .expected = std::move(expected),
                        .fix = kGetAgain};
    };
    if (bytes.empty() || bytes.size() > kMostPieceBytes)
      return damaged(fmt::format("{} bytes", bytes.size()), fmt::format("1 to {} bytes", kMostPieceBytes));
    if (text::valid_utf8_prefix(bytes) != bytes.size() || bytes.find('\0') != std::string::npos)
      return damaged("bytes that are no text", "UTF-8 without a zero byte");
    if (!std::isfinite(piece.score())) return damaged("a score that is no number", "a finite score");
    const std::string shown = quote(bytes);
    if (!seen_.insert(bytes).second) return damaged(shown + ", which an earlier piece is", "each piece once");
    return check_type(piece, fmt::format("piece {}, {}", id, shown));
  }

  // After all pieces.
  [[nodiscard]] std::optional<ModelFault> finish() const {
    if (unknown_ != 1) {
      return ModelFault{.what = "this model of SentencePiece is damaged",
                        .got = fmt::format("{} unknown pieces", unknown_),
                        .expected = "one piece for what is unknown",
                        .fix = kGetAgain};
    }
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
      if (bytes_[byte]) continue;
      return ModelFault{.what = "this model of SentencePiece cannot write every text",
                        .got = fmt::format("no piece for the byte 0x{:02X}", byte),
                        .expected = "pieces for all 256 bytes (byte_fallback)"};
    }
    return std::nullopt;
  }

 private:
  std::optional<ModelFault> check_type(const PiecesModel::Piece& piece, const std::string& named) {
    switch (piece.type()) {
      case kNormal:
      case kControl: return std::nullopt;
      case kUnknown: ++unknown_; return std::nullopt;
      case kOfByte:
        if (const auto byte = byte_of_name(piece.piece())) {
          bytes_.set(*byte);
          return std::nullopt;
        }
        return ModelFault{.what = "a piece of this model of SentencePiece cannot be",
                          .got = named + " for a byte",
                          .expected = "'<0x00>' to '<0xFF>'",
                          .fix = kGetAgain};
      case kOfUser:
        return ModelFault{.what = "this model of SentencePiece has pieces that a user has defined",
                          .got = named,
                          .expected = "pieces that were trained"};
      default:
        return ModelFault{.what = "this model of SentencePiece has pieces of a type that is not taken",
                          .got = fmt::format("{}, of type {}", named, piece.type()),
                          .expected = "pieces of words and of bytes, control symbols and the unknown one"};
    }
  }

  std::unordered_set<std::string_view> seen_;
  std::bitset<256> bytes_;
  int unknown_ = 0;
};

ModelFault not_as_it_is(std::string_view changed, std::string got, std::string expected) {
  return {.what = fmt::format("this model of SentencePiece changes {}", changed),
          .got = std::move(got),
          .expected = std::move(expected)};
}

// What applies to all texts.
std::optional<ModelFault> check_settings(const PiecesModel& model) {
  for (const auto* changes : {&model.normalizing(), &model.denormalizing()}) {
    if (changes->precompiled_charsmap().empty()) continue;
    return not_as_it_is("characters", fmt::format("a table of changes, {}", quote(changes->name())),
                        "normalization_rule_name=identity");
  }
  if (model.normalizing().add_dummy_prefix())
    return not_as_it_is("white space", "add_dummy_prefix=true", "add_dummy_prefix=false");
  if (model.normalizing().remove_extra_whitespaces())
    return not_as_it_is("white space", "remove_extra_whitespaces=true", "remove_extra_whitespaces=false");
  if (model.has_self_test()) {
    return ModelFault{.what = "this model of SentencePiece brings tests that run when it is opened",
                      .got = "self_test_data",
                      .expected = "a model without (self_test_sample_size=0)"};
  }
  if (const int type = model.training().model_type();
      std::ranges::find(kModelTypes, type) == kModelTypes.end()) {
    return ModelFault{.what = "this model of SentencePiece has a type that is not taken",
                      .got = fmt::format("model_type {}", type),
                      .expected = "unigram, bpe or char"};
  }
  if (model.training().byte_fallback()) return std::nullopt;
  return ModelFault{.what = "this model of SentencePiece cannot write every text",
                    .got = "byte_fallback=false",
                    .expected = "byte_fallback=true"};
}

std::optional<ModelFault> check_model(const PiecesModel& model) {
  if (model.pieces().empty()) {
    return ModelFault{.what = "this is no model of SentencePiece",
                      .got = "no pieces",
                      .expected = "what SentencePiece writes as NAME.model",
                      .fix = kGetAgain};
  }
  if (auto fault = check_settings(model)) return fault;
  PieceChecker checker;
  for (int id = 0; id < model.pieces_size(); ++id) {
    if (auto fault = checker.check(model.pieces(id), id)) return fault;
  }
  return checker.finish();
}

// Leaves out a field of a message behind its tag. False: the bytes are no field, or a group, which no model
// has.
bool skip_field(google::protobuf::io::CodedInputStream& in, std::uint32_t tag) {
  std::uint64_t number = 0;
  switch (tag & 7U) {
    case 0: return in.ReadVarint64(&number);
    case 1: return in.Skip(8);
    case 2:
      return in.ReadVarint64(&number) && number <= kMostTokenizerBytes && in.Skip(static_cast<int>(number));
    case 5: return in.Skip(4);
    default: return false;
  }
}

// How many pieces a model has; nothing where the bytes are none. A piece takes memory when it is parsed, and
// 64 MiB have room for 32 million that are empty.
std::optional<int> count_pieces(std::string_view model) {
  if (model.size() > kMostTokenizerBytes) return std::nullopt;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(model.data()),
                                            static_cast<int>(model.size()));
  int pieces = 0;
  while (const std::uint32_t tag = in.ReadTag()) {
    if (!skip_field(in, tag)) return std::nullopt;
    if (tag >> 3U == PiecesModel::kPiecesFieldNumber) ++pieces;
  }
  return in.ConsumedEntireMessage() ? std::optional(pieces) : std::nullopt;
}

// Leaves out what was not looked at.
void forget_unknown(PiecesModel& model) {
  model.mutable_unknown_fields()->clear();
  model.mutable_training()->mutable_unknown_fields()->clear();
  model.mutable_normalizing()->mutable_unknown_fields()->clear();
  model.clear_denormalizing();
  for (PiecesModel::Piece& piece : *model.mutable_pieces()) piece.mutable_unknown_fields()->clear();
}

}  // namespace

Result<std::string> checked_pieces_model(std::string_view model, const std::string& where) {
  constexpr int kMostPieces = static_cast<int>(kMostVocabulary - kTokensBesidePieces);
  PiecesModel read;
  std::optional<ModelFault> fault;
  const std::optional<int> pieces = count_pieces(model);
  if (pieces > kMostPieces) {
    fault = ModelFault{.what = "this model of SentencePiece has too many pieces",
                       .got = fmt::format("{}", *pieces),
                       .expected = fmt::format("at most {}", kMostPieces)};
  } else if (!pieces || !read.ParseFromArray(model.data(), static_cast<int>(model.size()))) {
    fault =
        ModelFault{.what = "this is no model of SentencePiece",
                   .got = fmt::format("{} bytes of something else, or a file that is damaged", model.size()),
                   .expected = "what SentencePiece writes as NAME.model",
                   .fix = kGetAgain};
  } else {
    fault = check_model(read);
  }
  if (fault) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = where,
                 .what = std::move(fault->what),
                 .got = std::move(fault->got),
                 .expected = std::move(fault->expected),
                 .fix = std::string(fault->fix)};
  }
  forget_unknown(read);
  return read.SerializeAsString();
}

}  // namespace gossamer::tokens
