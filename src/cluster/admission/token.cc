// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/token.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <gossamer/admission.pb.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hex.h"
#include "base/sha256.h"

namespace gossamer::cluster {
namespace {

constexpr std::string_view kPrefix = "gossamer1.";
constexpr std::string_view kAnyPrefix = "gossamer";
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kFingerprintBytes = sizeof(Sha256);
constexpr std::size_t kMaxHost = 255;
constexpr std::uint32_t kMaxPort = 65535;

Error unusable(std::string what, std::string got, std::string fix) {
  return {.kind = ErrorKind::kRefused,
          .where = "the token",
          .what = std::move(what),
          .got = std::move(got),
          .expected = "a line that begins with gossamer1. as `gossamer token create` prints it",
          .fix = std::move(fix)};
}

Error damaged() {
  return unusable("is cut off or mistyped", "a text whose checksum does not fit", "copy the whole line anew");
}

bool good(const Token& token) {
  return !token.at.host.empty() && token.at.host.size() <= kMaxHost && token.at.port != 0 &&
         is_hex(token.id, kTokenIdBytes) && token.secret.size() == kSecretBytes &&
         is_hex(token.authority, kFingerprintBytes) && host::parse_endpoint(to_string(token.at)).ok();
}

std::string base64url(std::string_view bytes) {
  return absl::WebSafeBase64Escape({bytes.data(), bytes.size()});
}

std::string checksum_of(std::string_view bytes) {
  const Sha256 hash = sha256(bytes);
  return {reinterpret_cast<const char*>(hash.data()), kChecksumBytes};
}

}  // namespace

std::string encode_token(const Token& token) {
  CHECK(good(token));
  wire::Token message;
  message.set_host(token.at.host);
  message.set_port(token.at.port);
  message.set_id(absl::HexStringToBytes(token.id));
  message.set_secret(token.secret);
  message.set_authority(absl::HexStringToBytes(token.authority));
  std::string bytes = message.SerializeAsString();
  bytes += checksum_of(bytes);
  return std::string(kPrefix) + base64url(bytes);
}

Result<Token> decode_token(std::string_view text) {
  if (!text.starts_with(kPrefix)) {
    const std::size_t dot = text.find('.');
    const bool other_version =
        text.starts_with(kAnyPrefix) && dot != std::string_view::npos && dot <= kPrefix.size() + 2 &&
        text.substr(0, dot).find_first_not_of("0123456789", kAnyPrefix.size()) == std::string_view::npos;
    if (other_version)
      return unusable("is of another version", "another number in front", "use the coordinator's version");
    return unusable("is no token", "another text", "copy the whole line anew");
  }
  if (text.size() > kMaxTokenText) return damaged();
  const std::string_view body = text.substr(kPrefix.size());
  std::string bytes;
  const bool readable = absl::WebSafeBase64Unescape({body.data(), body.size()}, &bytes) &&
                        bytes.size() >= kChecksumBytes && base64url(bytes) == body;
  if (!readable) return damaged();
  const std::string checksum = bytes.substr(bytes.size() - kChecksumBytes);
  bytes.resize(bytes.size() - kChecksumBytes);
  if (checksum_of(bytes) != checksum) return damaged();
  wire::Token message;
  Token token;
  const bool parsed = message.ParseFromString(bytes) && message.port() <= kMaxPort;
  if (parsed) {
    token = {.at = {.host = message.host(), .port = static_cast<std::uint16_t>(message.port())},
             .id = to_hex(message.id()),
             .secret = message.secret(),
             .authority = to_hex(message.authority())};
  }
  if (!parsed || !good(token)) {
    return unusable("is no token of this version", "other content",
                    "have a new one made with `gossamer token create`");
  }
  return token;
}

std::string hide_tokens(std::string_view text) {
  const auto of_token = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  };
  std::string out;
  for (std::size_t at = text.find(kPrefix); at != std::string_view::npos; at = text.find(kPrefix)) {
    out += text.substr(0, at + kPrefix.size());
    text.remove_prefix(at + kPrefix.size());
    const auto end = std::ranges::find_if_not(text, of_token);
    if (end != text.begin()) out += "***";
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
  }
  return out.append(text);
}

}  // namespace gossamer::cluster
