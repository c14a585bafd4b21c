// SPDX-License-Identifier: Apache-2.0
//
// Any text as a token, and any bytes as the content of a token. Prefix and checksum are made right, so that
// the fuzzer gets past them. The token is refused, or survives being written and read again. Any text also as
// a token's record, which lies in a file and travels between coordinators.
#include <absl/strings/escaping.h>

#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "cluster/admission/token.h"
#include "cluster/admission/token_book.h"

namespace {

using namespace gossamer;

void look(const std::string& text) {
  const auto token = cluster::decode_token(text);
  if (token.ok()) {
    const auto again = cluster::decode_token(cluster::encode_token(*token));
    CHECK(again.ok());
    CHECK(*again == *token);
  } else {
    CHECK(token.error().kind == ErrorKind::kRefused);
  }
}

void look_at_record(const std::string& text) {
  const auto record = cluster::parse_token_record(text, "there");
  if (record.ok()) {
    const auto again = cluster::parse_token_record(cluster::to_text(*record), "there");
    CHECK(again.ok());
    CHECK(again->id == record->id && again->revoked == record->revoked && again->expires == record->expires);
  } else {
    CHECK(record.error().kind == ErrorKind::kBadData);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  look(bytes);
  look_at_record(bytes);
  look("gossamer1." + bytes);
  const std::string checksum = absl::HexStringToBytes(to_hex(sha256(bytes)).substr(0, 8));
  look("gossamer1." + absl::WebSafeBase64Escape(bytes + checksum));
  return 0;
}
