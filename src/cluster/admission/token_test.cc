// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"

namespace gossamer::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string bytes_of(Rng& rng, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(rng.below(256));
  return bytes;
}

std::string digits_of(Rng& rng, std::size_t count) {
  std::string digits;
  for (std::size_t i = 0; i < count; ++i) digits += "0123456789abcdef"[rng.below(16)];
  return digits;
}

Token random_token(std::uint64_t seed, const std::string& host = "coordinator.example") {
  Rng rng(seed, Purpose::kTest);
  return {.at = {host, static_cast<std::uint16_t>(1 + rng.below(65535))},
          .id = digits_of(rng, 16),
          .secret = bytes_of(rng, kSecretBytes),
          .authority = digits_of(rng, 64)};
}

// A written token reads back, for names and addresses of all lengths, in characters that no shell touches.
TEST(TokenText, ReadsWhatItWrites) {
  std::uint64_t seed = 0;
  for (const std::string& host :
       {std::string("h"), std::string("::1"), std::string("10.0.0.1"), std::string(255, 'h')}) {
    for (int i = 0; i < 50; ++i) {
      const Token token = random_token(++seed, host);
      const std::string text = encode_token(token);
      EXPECT_LE(text.size(), kMaxTokenText);
      EXPECT_EQ(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
                std::string::npos);
      const auto read = decode_token(text);
      ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.error().message();
      EXPECT_EQ(*read, token) << "seed " << seed;
    }
  }
}

// Every cut, every added character and every change of one is noticed. The refusal has exit status 4 and does
// not repeat the text.
TEST(TokenText, DamageIsNoticed) {
  const std::string text = encode_token(random_token(1));
  std::set<std::string> damaged;
  for (std::size_t cut = 0; cut < text.size(); ++cut) damaged.insert(text.substr(0, cut));
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'A', 'z', '0', '-', '_', '.', '=', ' ', '\n', '\0', '\xff'}) {
      std::string changed = text;
      changed[at] = c;
      damaged.insert(changed);
    }
  }
  for (const char* more : {"A", "=", " ", "\n", "AAAA"}) damaged.insert(text + more);
  damaged.insert(" " + text);
  damaged.erase(text);
  for (const std::string& bad : damaged) {
    const auto read = decode_token(bad);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.error().kind, ErrorKind::kRefused);
    EXPECT_THAT(read.error().message(), Not(HasSubstr(text.substr(20, 20))));
  }
}

// The message tells a stranger's text, another version and damage apart.
TEST(TokenText, SaysWhatIsWrong) {
  const std::string text = encode_token(random_token(2));
  const auto what = [](const std::string& bad) { return decode_token(bad).error().what; };
  EXPECT_EQ(what(""), "is no token");
  EXPECT_EQ(what("hello"), "is no token");
  EXPECT_EQ(what("gossamer.abc"), "is of another version");
  EXPECT_EQ(what("gossamer2." + text.substr(10)), "is of another version");
  EXPECT_EQ(what("gossamer1."), "is cut off or mistyped");
  EXPECT_EQ(what(text.substr(0, text.size() / 2)), "is cut off or mistyped");
}

// Claim: nothing of a token is left in a text that somebody else may read, wherever it stands and however
// much of it is there. Other text stays.
TEST(TokenText, IsHidden) {
  const std::string token = encode_token(random_token(7));
  const std::string secret = token.substr(token.find('.') + 1);
  EXPECT_EQ(hide_tokens(token), "gossamer1.***");
  EXPECT_EQ(hide_tokens("got '" + token + "', twice " + token), "got 'gossamer1.***', twice gossamer1.***");
  for (std::size_t cut = 1; cut < secret.size(); cut += 9)
    EXPECT_EQ(hide_tokens("key=gossamer1." + secret.substr(0, cut) + "."), "key=gossamer1.***.") << cut;
  for (const std::string text :
       {"", "gossamer", "a line that begins with gossamer1. as printed", "gossamer1."})
    EXPECT_EQ(hide_tokens(text), text);
}

}  // namespace
}  // namespace gossamer::cluster
