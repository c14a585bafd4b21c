// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a model of SentencePiece. Where the first byte is odd, the rest stands behind a right model,
// which it changes: fields of one message that come twice are merged. A model that is taken has, in what the
// library gets, all that the library believes; and it is taken again, as the same bytes.
#include <gossamer/pieces.pb.h>

#include <bitset>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "learn/tokens/pieces_model.h"
#include "learn/tokens/test_pieces_model.h"
#include "learn/tokens/tokenizer.h"

namespace {

using namespace gossamer;

// What SentencePiece does not look at itself.
void check_believed(const std::string& bytes) {
  wire::PiecesModel model;
  CHECK(model.ParseFromString(bytes));
  CHECK(model.pieces_size() > 0 && model.pieces_size() < static_cast<int>(tokens::kMostVocabulary));
  CHECK(model.normalizing().precompiled_charsmap().empty() && !model.has_denormalizing());
  CHECK(!model.normalizing().add_dummy_prefix() && !model.normalizing().remove_extra_whitespaces());
  CHECK(!model.has_self_test() && model.unknown_fields().empty());
  std::set<std::string_view> seen;
  std::bitset<256> single;
  for (const auto& piece : model.pieces()) {
    CHECK(!piece.piece().empty() && piece.piece().size() <= tokens::kMostPieceBytes);
    CHECK(seen.insert(piece.piece()).second && std::isfinite(piece.score()));
    CHECK(piece.type() != 4 && piece.type() != 5 && piece.unknown_fields().empty(), piece.type());
    if (piece.type() == 6) single.set(std::stoul(piece.piece().substr(3, 2), nullptr, 16));
  }
  CHECK(single.all());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  static const std::string right = tokens::test_pieces::pieces_model();
  const std::string given = (bytes[0] % 2 == 1 ? right : std::string()) +
                            std::string(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const auto checked = tokens::checked_pieces_model(given, "fuzz");
  if (!checked.ok()) {
    const Error& error = checked.error();
    CHECK(error.kind == ErrorKind::kBadData && error.where == "fuzz" && !error.fix.empty(), error.message());
    return 0;
  }
  check_believed(*checked);
  const auto again = tokens::checked_pieces_model(*checked, "fuzz");
  CHECK(again.ok() && *again == *checked);
  return 0;
}
