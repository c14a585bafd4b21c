// SPDX-License-Identifier: Apache-2.0
//
// TokenFile: a token file (docs/protocols/token-file.md) mapped into memory. open() checks every checksum and
// that every token is below the vocabulary, in parallel; afterwards no access needs a check, whatever was in
// the file. Errors: those of the disk; kBadData with `where` = the file, for one that is damaged, cut off or
// no token file at all.
//
// Thread rule: immutable after open(), any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "host/api/compute.h"
#include "host/api/disk.h"
#include "learn/tokens/token_file_format.h"
#include "learn/tokens/tokenizer.h"

namespace gossamer::tokens {

class TokenFile {
 public:
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  ~TokenFile() = default;

  // `compute` is used only during the call.
  [[nodiscard]] static Result<std::unique_ptr<TokenFile>> open(host::Disk& disk, const std::string& path,
                                                               host::Compute& compute);
  // The same for a file that is mapped already; `name` is for messages.
  [[nodiscard]] static Result<std::unique_ptr<TokenFile>> open(std::unique_ptr<host::MappedFile> file,
                                                               const std::string& name,
                                                               host::Compute& compute);

  // tokenizer_digest() and checksum() of a file. It checks the ends of the file alone.
  struct Identity {
    std::uint64_t tokenizer_digest = 0;
    std::uint64_t checksum = 0;
  };
  [[nodiscard]] static Result<Identity> read_identity(host::Disk& disk, const std::string& path);

  // The number of tokens, with those behind documents.
  [[nodiscard]] std::uint64_t size() const { return trailer_.tokens; }
  // Every token is below; at least 1.
  [[nodiscard]] std::uint32_t vocabulary() const { return trailer_.vocabulary; }
  // The bytes of the text that the tokens stand for.
  [[nodiscard]] std::uint64_t text_bytes() const { return trailer_.text_bytes; }
  [[nodiscard]] std::uint64_t documents() const { return trailer_.documents; }
  // Tokenizer::digest() of the one that made the tokens.
  [[nodiscard]] std::uint64_t tokenizer_digest() const { return trailer_.tokenizer_digest; }
  // Covers the whole file: it tells these tokens, in this order, from others.
  [[nodiscard]] std::uint64_t checksum() const { return trailer_.trailer_checksum; }
  // The path, or the name given to open().
  [[nodiscard]] const std::string& name() const { return name_; }

  // Copies the tokens [from, from + out.size()). Requires them to be in the file (checked). Allocates
  // nothing.
  void copy(std::uint64_t from, std::span<TokenId> out) const;

 private:
  TokenFile(std::unique_ptr<host::MappedFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}

  std::unique_ptr<host::MappedFile> file_;
  std::string name_;
  layout::Trailer trailer_ = {};
  const std::byte* tokens_ = nullptr;
};

}  // namespace gossamer::tokens
