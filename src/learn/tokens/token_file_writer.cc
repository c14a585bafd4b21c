// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/token_file_writer.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "host/api/durable_directories.h"
#include "host/api/files.h"
#include "learn/tokens/token_file_format.h"

namespace gossamer::tokens {
namespace {

// Divides the bytes of a block, so that no buffer reaches over the end of one.
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
static_assert(layout::kBlockBytes % kBufferBytes == 0);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Stores the tokens as numbers of type T.
template <class T>
void store(std::span<const TokenId> tokens, std::byte* to) {
  for (const TokenId token : tokens) {
    const auto number = static_cast<T>(token);
    std::memcpy(to, &number, sizeof number);
    to += sizeof number;
  }
}

}  // namespace

TokenFileWriter::TokenFileWriter(host::Disk& disk, std::string path, TokenFileOptions options)
    : disk_(disk),
      path_(std::move(path)),
      temporary_(path_ + ".tmp"),
      options_(options),
      token_bytes_(layout::token_bytes(options.vocabulary)),
      block_digest_(std::make_unique<Digest>()) {
  CHECK(options.vocabulary > 0);
  buffer_.reserve(kBufferBytes);
}

TokenFileWriter::~TokenFileWriter() {
  file_.reset();
  // The caller that dropped the writer has the first error; a failing clean-up says nothing new.
  if (temporary_exists_) static_cast<void>(disk_.remove_all(temporary_).ok());
}

Result<std::unique_ptr<TokenFileWriter>> TokenFileWriter::create(host::Disk& disk, const std::string& path,
                                                                 TokenFileOptions options) {
  std::unique_ptr<TokenFileWriter> writer(new TokenFileWriter(disk, path, options));
  if (auto done = host::make_durable_directories(disk, host::parent(path)); !done.ok()) return done.error();
  auto file = disk.open_writable(writer->temporary_, host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  writer->temporary_exists_ = true;
  writer->file_ = *std::move(file);
  layout::Header header{
      .magic = {}, .version = layout::kVersion, .token_bytes = layout::token_bytes(options.vocabulary)};
  std::memcpy(header.magic, layout::kHeaderMagic.data(), sizeof header.magic);
  if (auto done = writer->append(bytes_of(header)); !done.ok()) return done.error();
  return writer;
}

Result<void> TokenFileWriter::append(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  return file_->append(bytes);
}

Result<void> TokenFileWriter::add(std::span<const TokenId> tokens, std::uint64_t text_bytes) {
  CHECK(file_ != nullptr);
  text_bytes_ += text_bytes;
  while (!tokens.empty()) {
    const std::size_t room = (kBufferBytes - buffer_.size()) / token_bytes_;
    const auto now = tokens.first(std::min(room, tokens.size()));
    tokens = tokens.subspan(now.size());
    const TokenId largest = *std::max_element(now.begin(), now.end());
    CHECK(largest < options_.vocabulary, largest, options_.vocabulary);
    const std::size_t before = buffer_.size();
    buffer_.resize(before + now.size() * token_bytes_);
    if (token_bytes_ == sizeof(std::uint16_t)) {
      store<std::uint16_t>(now, buffer_.data() + before);
    } else {
      store<std::uint32_t>(now, buffer_.data() + before);
    }
    tokens_ += now.size();
    if (buffer_.size() < kBufferBytes) continue;
    if (auto done = flush(); !done.ok()) return done;
  }
  return {};
}

Result<void> TokenFileWriter::end_document(TokenId end_of_text) {
  ++documents_;
  return add(std::span(&end_of_text, 1), 0);
}

Result<void> TokenFileWriter::flush() {
  block_digest_->add(buffer_);
  block_bytes_ += buffer_.size();
  auto done = append(buffer_);
  buffer_.clear();
  if (block_bytes_ == layout::kBlockBytes) {
    checksums_.push_back(block_digest_->value());
    block_digest_ = std::make_unique<Digest>();
    block_bytes_ = 0;
  }
  return done;
}

Result<void> TokenFileWriter::finish() {
  CHECK(file_ != nullptr);
  if (auto done = flush(); !done.ok()) return done;
  if (block_bytes_ > 0) checksums_.push_back(block_digest_->value());
  if (auto done = write_footer(); !done.ok()) return done;
  return publish();
}

Result<void> TokenFileWriter::write_footer() {
  constexpr std::byte kZeros[8] = {};
  const std::uint64_t padding = layout::padded(offset_) - offset_;
  if (auto done = append(std::span(kZeros).first(padding)); !done.ok()) return done;
  const auto footer = std::as_bytes(std::span(checksums_));
  layout::Trailer trailer{.magic = {},
                          .version = layout::kVersion,
                          .vocabulary = options_.vocabulary,
                          .tokens = tokens_,
                          .text_bytes = text_bytes_,
                          .documents = documents_,
                          .tokenizer_digest = options_.tokenizer_digest,
                          .footer_offset = offset_,
                          .footer_bytes = footer.size(),
                          .footer_checksum = XXH3_64bits(footer.data(), footer.size()),
                          .trailer_checksum = 0};
  std::memcpy(trailer.magic, layout::kTrailerMagic.data(), sizeof trailer.magic);
  trailer.trailer_checksum = XXH3_64bits(&trailer, offsetof(layout::Trailer, trailer_checksum));
  if (auto done = append(footer); !done.ok()) return done;
  return append(bytes_of(trailer));
}

Result<void> TokenFileWriter::publish() {
  if (auto done = file_->sync(); !done.ok()) return done;
  if (auto done = file_->close(); !done.ok()) return done;
  file_.reset();
  if (auto done = disk_.rename(temporary_, path_); !done.ok()) return done;
  temporary_exists_ = false;
  return disk_.sync_directory(host::parent(path_));
}

}  // namespace gossamer::tokens
