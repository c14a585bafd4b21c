// SPDX-License-Identifier: Apache-2.0
//
// TokenFileWriter: writes a token file (docs/protocols/token-file.md) piece by piece, in bounded memory. The
// file appears under its name only at the end of finish(), whole and synced. Until then, and after any error,
// what was there before stays.
//
//   auto writer = TokenFileWriter::create(disk, "runs/x/data/train.tokens", {.vocabulary = 257});
//   ... (*writer)->add(tokens, text_bytes) ... (*writer)->end_document(end_of_text) ...
//   (*writer)->finish()
//
// Owner and thread: one. Memory: 1 MiB, plus 8 bytes for each 16 MiB that are written.
// Errors: those of the disk. After one, only the destructor may be called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "host/api/disk.h"
#include "learn/tokens/tokenizer.h"

namespace gossamer::tokens {

// What the file says of the tokenizer.
struct TokenFileOptions {
  std::uint32_t vocabulary = 0;  // at least 1; every token must be below
  std::uint64_t tokenizer_digest = 0;
};

class TokenFileWriter {
 public:
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;
  // Removes the temporary file if finish() did not succeed.
  ~TokenFileWriter();

  // Makes the parent directories too, which a crash does not take back.
  [[nodiscard]] static Result<std::unique_ptr<TokenFileWriter>> create(host::Disk& disk,
                                                                       const std::string& path,
                                                                       TokenFileOptions options);

  // Appends the tokens of `text_bytes` bytes of a document. Requires every token to be below the vocabulary
  // (checked).
  [[nodiscard]] Result<void> add(std::span<const TokenId> tokens, std::uint64_t text_bytes);
  // Appends the token behind a document, and counts the document.
  [[nodiscard]] Result<void> end_document(TokenId end_of_text);
  // No call may follow but those that count.
  [[nodiscard]] Result<void> finish();

  // What was added so far.
  [[nodiscard]] std::uint64_t tokens() const { return tokens_; }
  [[nodiscard]] std::uint64_t text_bytes() const { return text_bytes_; }
  [[nodiscard]] std::uint64_t documents() const { return documents_; }

 private:
  TokenFileWriter(host::Disk& disk, std::string path, TokenFileOptions options);
  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] Result<void> write_footer();
  [[nodiscard]] Result<void> publish();

  host::Disk& disk_;
  std::string path_;
  std::string temporary_;
  TokenFileOptions options_;
  std::size_t token_bytes_;
  std::unique_ptr<host::WritableFile> file_;
  bool temporary_exists_ = false;

  std::vector<std::byte> buffer_;         // tokens that are not yet in the file
  std::unique_ptr<Digest> block_digest_;  // of the open block
  std::uint64_t block_bytes_ = 0;         // in the file, of the open block
  std::vector<std::uint64_t> checksums_;  // of the finished blocks

  std::uint64_t offset_ = 0;
  std::uint64_t tokens_ = 0;
  std::uint64_t text_bytes_ = 0;
  std::uint64_t documents_ = 0;
};

}  // namespace gossamer::tokens
