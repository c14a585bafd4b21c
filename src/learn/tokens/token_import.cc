// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/token_import.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "learn/tokens/token_file_writer.h"

namespace gossamer::tokens {
namespace {

// Writes the tokens of documents.
class EncodingSink final : public DocumentSink {
 public:
  EncodingSink(const Tokenizer& tokenizer, TokenFileWriter& writer)
      : tokenizer_(tokenizer), writer_(writer) {}

  Result<void> begin() override { return {}; }
  Result<void> piece(std::string_view text) override {
    tokens_.clear();
    tokenizer_.encode(text, tokens_);
    return writer_.add(tokens_, text.size());
  }
  Result<void> end() override { return writer_.end_document(tokenizer_.end_of_text()); }

 private:
  const Tokenizer& tokenizer_;
  TokenFileWriter& writer_;
  std::vector<TokenId> tokens_;  // of the last piece
};

}  // namespace

Result<TokenReport> import_tokens(host::Disk& disk, std::span<const std::string> sources,
                                  const Tokenizer& tokenizer, const std::string& path,
                                  const TextOptions& options) {
  auto writer = TokenFileWriter::create(
      disk, path, {.vocabulary = tokenizer.vocabulary(), .tokenizer_digest = tokenizer.digest()});
  if (!writer.ok()) return writer.error();
  EncodingSink sink(tokenizer, **writer);
  TextOptions beside = options;
  beside.read.sink = data::SinkRuns::kBesideParsing;
  auto text = read_documents(disk, sources, beside, sink);
  if (!text.ok()) return text.error();
  if (auto done = (*writer)->finish(); !done.ok()) return done.error();
  return TokenReport{.text = *std::move(text), .tokens = (*writer)->tokens()};
}

}  // namespace gossamer::tokens
