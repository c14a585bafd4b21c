// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/token_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/admission/test_tokens.h"
#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::cluster {
namespace {

using ::testing::HasSubstr;

TokenRecord hour(char digit) { return record_of(token_of(digit), kNow, kNow + 3600, "note"); }

class TokenBookTest : public ::testing::Test {
 protected:
  host::SimDisk disk_{{}};
  TokenBook book_{disk_, "run/tokens"};
};

// A token is good from its creation until it expires, for every stranger with its secret.
TEST_F(TokenBookTest, GoodUntilItExpires) {
  ASSERT_TRUE(book_.add(hour('a')).ok());
  const Token token = token_of('a');
  for (const std::int64_t now : {kNow, kNow + 3599})
    EXPECT_TRUE(book_.check(token.id, token.secret, now).ok());
  const auto late = book_.check(token.id, token.secret, kNow + 3600);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(late.error().where, "token aaaaaaaaaaaaaaaa");
  EXPECT_EQ(late.error().what, "has expired");
  EXPECT_EQ(late.error().got, "expired at 2027-01-15 09:00:00 UTC");
}

// An unknown id, a wrong secret and a malformed id are refused in the same words. A stranger with a wrong
// secret does not learn whether the token has expired.
TEST_F(TokenBookTest, WrongOnesLearnNothing) {
  ASSERT_TRUE(book_.add(hour('a')).ok());
  const std::string id = token_of('a').id;
  const std::string secret = token_of('a').secret;
  for (const std::int64_t now : {kNow, kNow + 7200}) {
    for (const auto& [tried, with] :
         {std::pair{id, std::string()}, std::pair{id, secret.substr(1)}, std::pair{id, std::string(32, 'b')},
          std::pair{std::string(16, 'b'), secret}, std::pair{std::string(), secret},
          std::pair{std::string("../tokens/aaaaaaaaaaaaaaaa"), secret},
          std::pair{std::string("AAAAAAAAAAAAAAAA"), secret}}) {
      const auto answer = book_.check(tried, with, now);
      ASSERT_FALSE(answer.ok()) << tried;
      EXPECT_EQ(answer.error().kind, ErrorKind::kRefused);
      EXPECT_EQ(answer.error().what, "is not known to this run, or its secret is wrong");
    }
  }
}

// Revoking takes effect at once for another book on the same directory. The refusal has words of its own, and
// the first time stays. An unknown token cannot be revoked.
TEST_F(TokenBookTest, Revoked) {
  ASSERT_TRUE(book_.add(hour('a')).ok());
  TokenBook other(disk_, "run/tokens");
  ASSERT_TRUE(other.revoke(token_of('a').id, kNow + 60).ok());
  const auto answer = book_.check(token_of('a').id, token_of('a').secret, kNow + 61);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(answer.error().what, "was revoked");
  EXPECT_EQ(answer.error().got, "revoked at 2027-01-15 08:01:00 UTC");
  const auto again = other.revoke(token_of('a').id, kNow + 90);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->revoked, kNow + 60);
  for (const char* id : {"bbbbbbbbbbbbbbbb", "", "../x"}) {
    const auto nobody = other.revoke(id, kNow);
    ASSERT_FALSE(nobody.ok());
    EXPECT_EQ(nobody.error().kind, ErrorKind::kUsage);
  }
}

// The list has every record as it was added, oldest first. It names files that cannot be read; those admit
// nobody.
TEST_F(TokenBookTest, ListNamesCorruptFiles) {
  EXPECT_TRUE((*book_.list()).records.empty());
  TokenRecord older = hour('b');
  older.created -= 10;
  older.note = "caf\xc3\xa9 \"quoted\"\n";
  ASSERT_TRUE(book_.add(hour('a')).ok());
  ASSERT_TRUE(book_.add(older).ok());
  EXPECT_FALSE(book_.add(older).ok());
  for (
      const auto& [digit, text] :
      {std::pair{'c', "{"}, std::pair{'d', "[]"}, std::pair{'e', R"({"version":2})"},
       std::pair{
           'f',
           R"({"version":1,"id":"aaaaaaaaaaaaaaaa","secret_sha256":"","created":1,"expires":2,"revoked":null,"note":""})"}}) {
    ASSERT_TRUE(
        host::replace_file(disk_, "run/tokens/" + std::string(16, digit) + ".json", std::string_view(text))
            .ok());
    const auto answer = book_.check(std::string(16, digit), std::string(32, digit), kNow);
    ASSERT_FALSE(answer.ok());
    EXPECT_THAT(answer.error().what, HasSubstr("unreadable"));
  }
  ASSERT_TRUE(host::replace_file(disk_, "run/tokens/readme.txt", std::string_view("x")).ok());
  const auto list = book_.list();
  ASSERT_TRUE(list.ok());
  EXPECT_EQ((*list).records, (std::vector<TokenRecord>{older, hour('a')}));
  ASSERT_EQ((*list).unreadable.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*list).unreadable[i].where, "run/tokens/" + std::string(16, "cdef"[i]) + ".json");
    EXPECT_EQ((*list).unreadable[i].kind, ErrorKind::kBadData);
  }
}

// A crash at any moment of creating or revoking leaves the old state or the new one; once the call has
// returned, the new one.
TEST(TokenBookCrash, OldOrNew) {
  const Token token = token_of('a');
  int visited = 0;
  for (std::uint64_t k = 0;; ++k) {
    host::SimDisk disk({.seed = 1});
    ASSERT_TRUE(disk.make_directories("run").ok() && disk.sync_directory(".").ok());
    TokenBook book(disk, "run/tokens");
    ASSERT_TRUE(book.add(hour('b')).ok());
    disk.restart_count({.seed = k, .crash_at_operation = k});
    const bool added = book.add(hour('a')).ok();
    const bool revoked = book.revoke(token_of('b').id, kNow).ok();
    const auto later = disk.after_crash();
    TokenBook after(*later, "run/tokens");
    const bool there = after.check(token.id, token.secret, kNow).ok();
    const bool still_good = after.check(token_of('b').id, token_of('b').secret, kNow).ok();
    EXPECT_TRUE((*after.list()).unreadable.empty()) << "crash at " << k;
    EXPECT_TRUE(there || !added) << "crash at " << k;
    EXPECT_FALSE(revoked && still_good) << "crash at " << k;
    ++visited;
    if (added && revoked) break;
  }
  EXPECT_GT(visited, 10);
}

// Two books that take up each other's records end alike, in either order and however often. A token revoked
// in either is revoked, at the earlier time. A record that one book lacks comes from the other.
TEST_F(TokenBookTest, MergingKnowsNoOrder) {
  const std::vector<std::optional<TokenRecord>> states = [] {
    std::vector<std::optional<TokenRecord>> all{std::nullopt, hour('a')};
    for (const std::int64_t when : {kNow + 1, kNow + 2}) {
      all.push_back(hour('a'));
      all.back()->revoked = when;
    }
    return all;
  }();
  for (std::size_t here = 0; here < states.size(); ++here) {
    for (std::size_t there = 1; there < states.size(); ++there) {
      host::SimDisk disk{{}};
      TokenBook book(disk, "run/tokens");
      if (states[here]) {
        ASSERT_TRUE(book.add(*states[here]).ok());
      }
      // The states stand in the order in which they win: none, good, revoked late. An early revocation wins
      // over a late one.
      const bool early = here == 2 || there == 2;
      const auto& expected = early ? states[2] : states[std::max(here, there)];
      for (int times = 0; times < 2; ++times) {
        const auto merged = book.merge(*states[there]);
        ASSERT_TRUE(merged.ok());
        EXPECT_EQ(*merged, *expected) << here << ' ' << there;
        EXPECT_EQ(book.list()->records, std::vector{*expected});
      }
    }
  }
}

// A damaged file gives way to another book's record. A record survives the way as text, and a text that is no
// record does not become one.
TEST_F(TokenBookTest, RecordsTravel) {
  ASSERT_TRUE(book_.add(hour('a')).ok());
  ASSERT_TRUE(host::replace_file(disk_, "run/tokens/aaaaaaaaaaaaaaaa.json", std::string_view("{")).ok());
  ASSERT_TRUE(book_.merge(hour('a')).ok());
  EXPECT_EQ(book_.list()->records, std::vector{hour('a')});
  EXPECT_EQ(*parse_token_record(to_text(hour('b')), "there"), hour('b'));
  TokenRecord limited = hour('b');
  limited.uses = 5;
  EXPECT_EQ(*parse_token_record(to_text(limited), "there"), limited);
  // Builds before this one wrote no `uses`: any number.
  std::string before = to_text(hour('b'));
  before.erase(before.find(",\n  \"uses\""), std::string(",\n  \"uses\": null").size());
  EXPECT_EQ(before.find("uses"), std::string::npos);
  EXPECT_EQ(*parse_token_record(before, "there"), hour('b')) << before;
  TokenRecord wrong = hour('c');
  wrong.id = "../c";
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{}"), to_text(wrong)}) {
    const auto read = parse_token_record(text, "there");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(read.error().where, "there");
  }
}

}  // namespace
}  // namespace gossamer::cluster
