// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a token file. Opening answers with bad data, or with a file whose every token is below its
// vocabulary, and whose windows lie in it. Checksums are made right first, so that the fuzzer gets past them.
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "host/sim/compute.h"
#include "learn/tokens/token_file.h"
#include "learn/tokens/token_file_format.h"
#include "learn/tokens/token_windows.h"

namespace {

using namespace gossamer;
using tokens::layout::Header;
using tokens::layout::Trailer;

// A mapped file. It lies in 64-bit words, for alignment.
class MappedWords final : public host::MappedFile {
 public:
  MappedWords(std::vector<std::uint64_t> words, std::size_t size) : words_(std::move(words)), size_(size) {}
  std::span<const std::byte> bytes() const override { return std::as_bytes(std::span(words_)).first(size_); }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
};

// A fuzzer's file has one block at most.
void seal(std::uint8_t* bytes, std::size_t size) {
  if (size < sizeof(Header) + sizeof(Trailer)) return;
  const std::size_t end = size - sizeof(Trailer);
  Header header;
  Trailer trailer;
  std::memcpy(&header, bytes, sizeof header);
  std::memcpy(&trailer, bytes + end, sizeof trailer);
  if (trailer.footer_offset > end) return;
  const std::uint64_t room =
      trailer.footer_offset < sizeof header ? 0 : trailer.footer_offset - sizeof header;
  if (end - trailer.footer_offset >= sizeof(std::uint64_t) && header.token_bytes > 0 &&
      trailer.tokens <= room / header.token_bytes) {
    const std::uint64_t checksum = XXH3_64bits(bytes + sizeof header, trailer.tokens * header.token_bytes);
    std::memcpy(bytes + trailer.footer_offset, &checksum, sizeof checksum);
  }
  trailer.footer_checksum = XXH3_64bits(bytes + trailer.footer_offset, end - trailer.footer_offset);
  trailer.trailer_checksum = XXH3_64bits(&trailer, offsetof(Trailer, trailer_checksum));
  std::memcpy(bytes + end, &trailer, sizeof trailer);
}

// Reads all windows of a context.
void read_windows(const tokens::TokenFile& file, std::uint32_t context) {
  std::vector<tokens::TokenId> inputs(context);
  std::vector<tokens::TokenId> targets(context);
  const auto measured = tokens::EvalWindows::cut(file, context);
  CHECK(measured.ok() == (file.size() > 1));
  std::uint64_t seen = 0;
  for (std::uint64_t i = 0; measured.ok() && i < measured->windows(); ++i) {
    seen += measured->read(i, inputs, targets);
  }
  CHECK(!measured.ok() || seen == measured->targets());
  const auto windows = tokens::TokenWindows::cut(file, {.context = context, .seed = file.checksum()});
  CHECK(windows.ok() == (file.size() > context));
  for (std::uint64_t i = 0; windows.ok() && i < windows->windows(); ++i) {
    windows->read(SampleId(i), inputs, targets);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::vector<std::uint64_t> words(size / 8 + 1);
  if (size > 0) std::memcpy(words.data(), bytes, size);
  seal(reinterpret_cast<std::uint8_t*>(words.data()), size);
  host::SimCompute compute({.workers = 2});
  const auto file =
      tokens::TokenFile::open(std::make_unique<MappedWords>(std::move(words), size), "fuzz", compute);
  if (!file.ok()) {
    CHECK(file.error().kind == ErrorKind::kBadData && file.error().where == "fuzz");
    return 0;
  }
  std::vector<tokens::TokenId> all((*file)->size());
  (*file)->copy(0, all);
  for (const tokens::TokenId token : all) CHECK(token < (*file)->vocabulary());
  for (const std::uint32_t context : {1U, 3U, 100U}) read_windows(**file, context);
  return 0;
}
