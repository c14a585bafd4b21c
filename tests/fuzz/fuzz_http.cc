// SPDX-License-Identifier: Apache-2.0
//
// The strict check in front of the HTTP library. The first byte chooses pieces, the rest is what a client
// sends. How the bytes are cut into pieces makes no difference. What passes has lines with CR LF alone, and
// passes again with the same meaning. A refusal says why.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "host/posix/http/chunk_check.h"
#include "host/posix/http/request_head.h"

namespace {

using namespace gossamer;
using State = host::HeadReader::State;

struct Read {
  host::HeadReader reader = {};
  State state = State::kMore;
  std::size_t used = 0;
};

Read read_head(std::string_view bytes, std::size_t piece) {
  Read read;
  while (read.state == State::kMore && read.used < bytes.size()) {
    const std::string_view next = bytes.substr(read.used, piece);
    std::size_t used = 0;
    read.state = read.reader.take(next, used);
    CHECK(used <= next.size());
    CHECK(read.state != State::kMore || used == next.size());
    read.used += used;
  }
  return read;
}

void check_same(const host::RequestHead& a, const host::RequestHead& b) {
  CHECK(a.text == b.text && a.is_page == b.is_page && a.is_last == b.is_last);
  CHECK(a.chunked == b.chunked && a.body_bytes == b.body_bytes);
}

void check_plain(std::string_view text) {
  CHECK(text.ends_with("\r\n\r\n"));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') CHECK(i > 0 && text[i - 1] == '\r', i);
    if (text[i] == '\r') CHECK(i + 1 < text.size() && text[i + 1] == '\n', i);
    CHECK(text[i] != '\0', i);
  }
}

void heads(std::string_view bytes, std::size_t piece) {
  const Read whole = read_head(bytes, std::max<std::size_t>(bytes.size(), 1));
  const Read pieces = read_head(bytes, piece);
  CHECK(whole.state == pieces.state);
  CHECK(whole.used <= host::kMostHeadBytes + 1, whole.used);
  if (whole.state == State::kRefused) {
    const host::HttpRefusal& refusal = whole.reader.refusal();
    CHECK(refusal.status == 400 || refusal.status == 415 || refusal.status == 417 || refusal.status == 431,
          refusal.status);
    CHECK(refusal.status == pieces.reader.refusal().status && !refusal.error.what.empty());
  }
  if (whole.state != State::kWhole) return;
  CHECK(whole.used == pieces.used, whole.used, pieces.used);
  check_same(whole.reader.head(), pieces.reader.head());
  check_plain(bytes.substr(0, whole.used));
  check_plain(whole.reader.head().text);
  CHECK(!whole.reader.head().chunked || whole.reader.head().body_bytes == 0);
  std::string text = whole.reader.head().text;
  text.insert(text.find('\n') + 1, "Host: a\r\n");  // nobody behind the check uses it
  const Read again = read_head(text, text.size());
  CHECK(again.state == State::kWhole && again.used == text.size());
  check_same(whole.reader.head(), again.reader.head());
}

void chunks(std::string_view bytes, std::size_t piece) {
  host::ChunkCheck whole;
  const std::size_t passed = whole.pass(bytes);
  CHECK(passed <= bytes.size());
  CHECK(passed == bytes.size() || whole.ended() || whole.refused());
  host::ChunkCheck pieces;
  std::size_t sum = 0;
  for (std::size_t at = 0; at < bytes.size() && !pieces.ended() && !pieces.refused(); at += piece)
    sum += pieces.pass(bytes.substr(at, piece));
  CHECK(sum == passed, sum, passed);
  CHECK(pieces.ended() == whole.ended() && pieces.refused() == whole.refused());
  if (whole.ended()) CHECK(bytes.substr(0, passed).ends_with("0\r\n\r\n"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 16;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  heads(bytes, piece);
  chunks(bytes, piece);
  return 0;
}
