// SPDX-License-Identifier: Apache-2.0
//
// From a user's text to a token file in one call. Each document (text_documents.h) is encoded piece by piece,
// and the end of text stands behind it. The file appears under its name whole or not at all: on any error
// what was there before stays.
//
//   auto report = import_tokens(disk, sources, ByteTokenizer(), "runs/x/data/train.tokens", {});
//
// Errors: those of text_documents.h and of the disk. Memory: that of both, and the tokens of one piece.
// Thread rule: the calling thread, which also encodes; JSON lines are parsed on the workers of
// options.read.compute.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/tokens/text_documents.h"
#include "learn/tokens/tokenizer.h"

namespace gossamer::tokens {

struct TokenReport {
  TextReport text = {};      // text.bytes are what the tokens stand for
  std::uint64_t tokens = 0;  // with one behind each document
};

// `sources` as in read_documents(), at least one. options.read.sink is ignored: encoding uses no Compute.
[[nodiscard]] Result<TokenReport> import_tokens(host::Disk& disk, std::span<const std::string> sources,
                                                const Tokenizer& tokenizer, const std::string& path,
                                                const TextOptions& options);

}  // namespace gossamer::tokens
