// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer of a user's text: by its name, from a file, or trained on the text.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/lm/lm_modules.h"
#include "host/api/disk.h"
#include "learn/tokens/tokenizer.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Makes a tokenizer of its name() and model(); `where` is for messages. Errors: kRefused for another name,
// and for a module that is not there; those of SentencePieceTokenizer::load().
[[nodiscard]] Result<std::unique_ptr<tokens::Tokenizer>> load_tokenizer(const run::NodeHost& host,
                                                                        const OpenPieces& open_pieces,
                                                                        const std::string& name,
                                                                        std::string model,
                                                                        const std::string& where);

// The tokenizer of a token file: bytes where its digest says so, else that of tokenizer.model beside it, else
// bytes.
[[nodiscard]] Result<std::unique_ptr<tokens::Tokenizer>> tokenizer_beside(const run::NodeHost& host,
                                                                          const OpenPieces& open_pieces,
                                                                          const std::string& token_file);

struct TokenizerWanted {
  // "bytes", "sentencepiece", a file with a model of SentencePiece, or a folder with tokenizer.model
  std::string word;
  std::optional<std::uint32_t> vocabulary = {};  // of one that is trained, most tokens
  std::vector<std::string> sources;              // texts, as read_documents() takes them, or one token file
  bool texts_alone = false;                      // a source is a text, whatever its name is
  std::uint64_t skip_bad = 0;
  std::string kept;  // where its model is kept
  // Tokenizer::digest() of the one that has made the tokens that are there already.
  std::optional<std::uint64_t> digest = {};
  bool first = true;                // a `vocabulary` that does nothing is refused
  std::function<bool()> stop = {};  // as in TextImport
  // What the user calls `word` and `vocabulary`, for messages.
  std::string word_key = "data.tokenizer";
  std::string vocabulary_key = "data.vocabulary";
};
// The first of
// 1. what is kept: a run goes on with its tokenizer. Where it is damaged, people are told, and it is 2 or 3;
// 2. for tokens that are imported: theirs, unless `word` is a file. It is told where "sentencepiece" or
//    `vocabulary` asks for others;
// 3. what `word` says. "sentencepiece" is trained on a sample of the text, with progress for people.
// With a `digest`, no other tokenizer is given: kBadData names what is kept, which is gone or damaged, where
// the text does not make the same one again. Nothing is written. Errors: those above, of read_documents() and
// of train_sentencepiece(); kUsage for a word that is neither, for a vocabulary that cannot be, or does
// nothing, and for what cannot be read twice.
[[nodiscard]] Result<std::unique_ptr<tokens::Tokenizer>> tokenizer_of_text(const run::NodeHost& host,
                                                                           const OpenPieces& open_pieces,
                                                                           const TokenizerWanted& wanted);

// Writes the model of a tokenizer that has one, where it is not there yet. The directory is made.
[[nodiscard]] Result<void> keep_tokenizer(host::Disk& disk, const std::string& path,
                                          const tokens::Tokenizer& tokenizer);

}  // namespace gossamer::commands
