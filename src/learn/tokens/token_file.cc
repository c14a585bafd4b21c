// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/token_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace gossamer::tokens {
namespace {

Error refused(const std::string& name, std::string what, std::string got, std::string expected) {
  return Error{.kind = ErrorKind::kBadData,
               .where = name,
               .what = std::move(what),
               .got = std::move(got),
               .expected = std::move(expected),
               .fix = "import the text again"};
}

Error damaged(const std::string& name, std::string got) {
  return refused(name, "the token file is damaged", std::move(got), "the bytes as written");
}

// The numbers that lie at `bytes`, which begin at a multiple of sizeof(T).
template <class T>
std::span<const T> numbers(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <class T>
TokenId largest(std::span<const std::byte> bytes) {
  T most = 0;
  for (const T token : numbers<T>(bytes)) most = std::max(most, token);
  return most;
}

// Checks a file from its ends to its middle.
class Verifier {
 public:
  Verifier(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  [[nodiscard]] Result<layout::Header> header() const;
  [[nodiscard]] Result<layout::Trailer> trailer(const layout::Header& header) const;
  [[nodiscard]] Result<void> contents(const layout::Trailer& trailer, host::Compute& compute) const;

 private:
  [[nodiscard]] bool consistent(const layout::Header& header, const layout::Trailer& trailer) const;

  std::span<const std::byte> bytes_;
  const std::string& name_;
};

Result<layout::Header> Verifier::header() const {
  layout::Header header;
  const bool starts = bytes_.size() >= sizeof header &&
                      std::memcmp(bytes_.data(), layout::kHeaderMagic.data(), sizeof header.magic) == 0;
  if (!starts) {
    return refused(name_, "this is not a token file", "another kind of file",
                   "a file that starts with GSMRTOKN");
  }
  std::memcpy(&header, bytes_.data(), sizeof header);
  if (header.version != layout::kVersion) {
    return refused(name_, "the token file has another version", fmt::format("version {}", header.version),
                   fmt::format("version {}", layout::kVersion));
  }
  return header;
}

Result<layout::Trailer> Verifier::trailer(const layout::Header& header) const {
  layout::Trailer trailer;
  const bool holds = bytes_.size() >= sizeof header + sizeof trailer;
  if (holds) std::memcpy(&trailer, bytes_.data() + bytes_.size() - sizeof trailer, sizeof trailer);
  if (!holds || std::memcmp(trailer.magic, layout::kTrailerMagic.data(), sizeof trailer.magic) != 0) {
    return refused(name_, "the token file is cut off",
                   fmt::format("{} bytes without a trailer", bytes_.size()), "the whole file");
  }
  if (XXH3_64bits(&trailer, offsetof(layout::Trailer, trailer_checksum)) != trailer.trailer_checksum) {
    return damaged(name_, "a trailer whose checksum does not match");
  }
  if (!consistent(header, trailer)) return damaged(name_, "a trailer that contradicts the file");
  const auto footer = bytes_.subspan(trailer.footer_offset, trailer.footer_bytes);
  if (XXH3_64bits(footer.data(), footer.size()) != trailer.footer_checksum) {
    return damaged(name_, "a footer whose checksum does not match");
  }
  return trailer;
}

bool Verifier::consistent(const layout::Header& header, const layout::Trailer& trailer) const {
  if (trailer.version != layout::kVersion || trailer.vocabulary == 0) return false;
  if (header.token_bytes != layout::token_bytes(trailer.vocabulary)) return false;
  // The division keeps the sums below from overflowing.
  if (trailer.tokens > bytes_.size() / header.token_bytes || trailer.documents > trailer.tokens) return false;
  const std::uint64_t token_bytes = trailer.tokens * header.token_bytes;
  return trailer.footer_offset == sizeof header + layout::padded(token_bytes) &&
         trailer.footer_bytes == layout::blocks(token_bytes) * sizeof(std::uint64_t) &&
         trailer.footer_offset + trailer.footer_bytes + sizeof trailer == bytes_.size();
}

Result<void> Verifier::contents(const layout::Trailer& trailer, host::Compute& compute) const {
  struct Fault {
    std::size_t block = 0;
    const char* what = nullptr;
  };
  const std::uint32_t token_bytes = layout::token_bytes(trailer.vocabulary);
  const auto all = bytes_.subspan(sizeof(layout::Header), trailer.footer_offset - sizeof(layout::Header));
  const auto tokens = all.first(trailer.tokens * token_bytes);
  const auto padding = all.subspan(tokens.size());
  if (!std::all_of(padding.begin(), padding.end(), [](std::byte b) { return b == std::byte{0}; })) {
    return damaged(name_, "padding that is not zero");
  }
  const auto checksums = numbers<std::uint64_t>(bytes_.subspan(trailer.footer_offset, trailer.footer_bytes));
  const auto block = [&](std::size_t i) {
    const std::size_t begin = i * layout::kBlockBytes;
    return tokens.subspan(begin, std::min<std::size_t>(layout::kBlockBytes, tokens.size() - begin));
  };
  const auto fault_of = [&](std::size_t i) -> const char* {
    const auto bytes = block(i);
    if (XXH3_64bits(bytes.data(), bytes.size()) != checksums[i])
      return "its checksum does not match its bytes";
    const TokenId most = token_bytes == 2 ? largest<std::uint16_t>(bytes) : largest<std::uint32_t>(bytes);
    return most < trailer.vocabulary ? nullptr : "a token is not in the vocabulary";
  };
  // Keeps every worker's first fault. The ranges are in order, so the first of these is the first of all.
  std::vector<Fault> faults(static_cast<std::size_t>(compute.workers()));
  compute.run([&](int worker) {
    const host::Range range = host::worker_range(checksums.size(), worker, compute.workers());
    Fault& fault = faults[static_cast<std::size_t>(worker)];
    for (std::size_t i = range.begin; i < range.end && fault.what == nullptr; ++i) {
      fault = {.block = i, .what = fault_of(i)};
    }
  });
  for (const Fault& fault : faults) {
    if (fault.what == nullptr) continue;
    return damaged(name_,
                   fmt::format("block {} at byte {}: {}", fault.block,
                               sizeof(layout::Header) + fault.block * layout::kBlockBytes, fault.what));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TokenFile>> TokenFile::open(host::Disk& disk, const std::string& path,
                                                   host::Compute& compute) {
  auto file = disk.map(path);
  if (!file.ok()) return file.error();
  return open(*std::move(file), path, compute);
}

Result<std::unique_ptr<TokenFile>> TokenFile::open(std::unique_ptr<host::MappedFile> file,
                                                   const std::string& name, host::Compute& compute) {
  const auto bytes = file->bytes();
  CHECK(bytes.empty() || reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 == 0);
  std::unique_ptr<TokenFile> opened(new TokenFile(std::move(file), name));
  const Verifier verifier(bytes, name);
  const auto header = verifier.header();
  if (!header.ok()) return header.error();
  const auto trailer = verifier.trailer(*header);
  if (!trailer.ok()) return trailer.error();
  if (auto done = verifier.contents(*trailer, compute); !done.ok()) return done.error();
  opened->trailer_ = *trailer;
  opened->tokens_ = bytes.data() + sizeof(layout::Header);
  return opened;
}

Result<TokenFile::Identity> TokenFile::read_identity(host::Disk& disk, const std::string& path) {
  const auto file = disk.map(path);
  if (!file.ok()) return file.error();
  const Verifier verifier((*file)->bytes(), path);
  const auto header = verifier.header();
  if (!header.ok()) return header.error();
  const auto trailer = verifier.trailer(*header);
  if (!trailer.ok()) return trailer.error();
  return Identity{.tokenizer_digest = trailer->tokenizer_digest, .checksum = trailer->trailer_checksum};
}

void TokenFile::copy(std::uint64_t from, std::span<TokenId> out) const {
  CHECK(from <= size() && out.size() <= size() - from, from, out.size(), size());
  if (out.empty()) return;
  if (layout::token_bytes(vocabulary()) == sizeof(std::uint16_t)) {
    const auto* tokens = reinterpret_cast<const std::uint16_t*>(tokens_) + from;
    std::copy_n(tokens, out.size(), out.begin());
  } else {
    const auto* tokens = reinterpret_cast<const std::uint32_t*>(tokens_) + from;
    std::copy_n(tokens, out.size(), out.begin());
  }
}

}  // namespace gossamer::tokens
