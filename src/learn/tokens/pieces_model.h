// SPDX-License-Identifier: Apache-2.0
//
// Checks a model of SentencePiece (a file NAME.model) before the library sees its bytes. The library was not
// written against hostile files. It believes offsets in the table by which characters are changed. It reads
// past an array where many pieces that a user has defined begin alike. It runs the tests that a file brings
// while it opens the file. So a model with any of these is refused, and the library gets nothing that was not
// looked at.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gossamer::tokens {

// A longer piece stands in no model that was trained: SentencePiece makes none of more than 16 characters,
// if it is not told to.
inline constexpr std::size_t kMostPieceBytes = 1024;

// The bytes for the library: a model without what is not known here. `where` is for messages. Errors,
// kBadData: bytes that are no model; one that changes characters or white space, lacks a byte, brings tests,
// or has pieces that cannot be.
[[nodiscard]] Result<std::string> checked_pieces_model(std::string_view model, const std::string& where);

}  // namespace gossamer::tokens
