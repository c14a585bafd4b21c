// SPDX-License-Identifier: Apache-2.0
#include "cluster/chunks/donor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cluster/chunks/test_content.h"

namespace gossamer::cluster {
namespace {

using ::testing::HasSubstr;
using wire::Chunks;

constexpr net::PeerId kPeer{NodeId{5}, Incarnation{9}};
constexpr net::PeerId kOther{NodeId{6}, Incarnation{10}};

class DonorTest : public ::testing::Test {
 protected:
  Donor make(std::uint64_t most_in_service, double bytes_per_second) {
    return Donor(
        {.channels = {1, 2}, .most_in_service = most_in_service, .bytes_per_second = bytes_per_second}, {});
  }
  void give(Donor& donor, std::optional<ChunkSet> has = std::nullopt) {
    donor.give(content_.manifest, std::move(has),
               [this](const Manifest&, std::uint64_t chunk) -> Result<Slice> {
                 if (chunk == unreadable_) return Error{.what = "cannot read"};
                 return content_.chunk(chunk);
               });
  }
  // The one answer to a message.
  std::pair<Chunks, std::string> ask(Donor& donor, const Chunks& body, Instant now = {},
                                     net::PeerId from = kPeer) {
    std::vector<ChunkSend> out;
    EXPECT_TRUE(
        donor.on(from, {.channel = 1, .body = body.SerializeAsString(), .payload = {}}, now, out).ok());
    EXPECT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].to, from);
    EXPECT_EQ(out[0].message.channel, 2U);
    Chunks answer;
    EXPECT_TRUE(answer.ParseFromString(out[0].message.body));
    return {answer, joined(out[0].message.payload)};
  }
  [[nodiscard]] Chunks want(std::uint64_t chunk) const {
    return chunks_body(content_.manifest.id(), Chunks::WANT, chunk);
  }
  Chunks::Kind kind_of(Donor& donor, std::uint64_t chunk, Instant now = {}, net::PeerId from = kPeer) {
    return ask(donor, want(chunk), now, from).first.kind();
  }

  const Content content_ = make_content(1000, 100, 1);
  std::uint64_t unreadable_ = 1000;
};

// The donor offers all, some or none of the chunks, and adds the manifest if asked.
TEST_F(DonorTest, Offers) {
  Donor donor = make(16, 1e9);
  Chunks body = chunks_body(content_.manifest.id(), Chunks::ASK);
  EXPECT_EQ(ask(donor, body).second, "");
  EXPECT_FALSE(ask(donor, body).first.whole());
  give(donor);
  EXPECT_EQ(ask(donor, body).second, "");
  EXPECT_TRUE(ask(donor, body).first.whole());
  ChunkSet some(10, false);
  some[0] = some[9] = true;
  give(donor, some);
  EXPECT_EQ(ask(donor, body).second, std::string("\x01\x02"));
  body.set_with_manifest(true);
  const std::string manifest = joined({content_.manifest.encoded()});
  EXPECT_EQ(ask(donor, body).second, manifest + "\x01\x02");
  EXPECT_EQ(ask(donor, body).first.manifest_bytes(), manifest.size());
  donor.withdraw(content_.manifest.id());
  EXPECT_EQ(ask(donor, body).second, "");
}

// The donor serves chunks that it has. The answer is GONE for a chunk that is missing, unreadable or unknown.
TEST_F(DonorTest, ServesOrSaysGone) {
  Donor donor = make(16, 1e9);
  EXPECT_EQ(kind_of(donor, 3), Chunks::GONE);
  ChunkSet some(10, true);
  some[4] = false;
  give(donor, some);
  unreadable_ = 5;
  const auto [answer, bytes] = ask(donor, want(3));
  EXPECT_EQ(answer.kind(), Chunks::CHUNK);
  EXPECT_EQ(answer.chunk(), 3U);
  EXPECT_EQ(bytes, joined({content_.chunk(3)}));
  for (const std::uint64_t chunk :
       {std::uint64_t{4}, std::uint64_t{5}, std::uint64_t{10}, ~std::uint64_t{0}}) {
    EXPECT_EQ(kind_of(donor, chunk), Chunks::GONE) << chunk;
  }
  EXPECT_EQ(donor.in_service(), 1U);
}

// At most N requests are in service, from whichever peers. A chunk that arrived and a fetcher that is lost
// make room.
TEST_F(DonorTest, AtMostNInService) {
  Donor donor = make(3, 1e9);
  give(donor);
  for (std::uint64_t chunk = 0; chunk < 3; ++chunk) EXPECT_EQ(kind_of(donor, chunk), Chunks::CHUNK);
  EXPECT_EQ(kind_of(donor, 3, {}, kOther), Chunks::BUSY);
  EXPECT_EQ(ask(donor, want(3)).first.retry_ms(), 51U);
  donor.served(kOther);  // no chunk to this peer is in service
  EXPECT_EQ(donor.in_service(), 3U);
  donor.served(kPeer);
  EXPECT_EQ(kind_of(donor, 3, {}, kOther), Chunks::CHUNK);
  donor.lost(kPeer);
  EXPECT_EQ(donor.in_service(), 1U);
  donor.served(kPeer);
  EXPECT_EQ(donor.in_service(), 1U);
}

// The donor gives at most B bytes a second over any time, with one second's worth and one chunk at once. A
// fetcher that comes back when it was told to is served.
TEST_F(DonorTest, TokenBucket) {
  Donor donor = make(1'000'000, 500);
  give(donor);
  Rng rng(1, Purpose::kTest);
  std::uint64_t given = 0;
  Instant now;
  for (int i = 0; i < 5000; ++i) {
    const auto [answer, bytes] = ask(donor, want(rng.below(10)), now);
    given += bytes.size();
    EXPECT_LE(static_cast<double>(given), 500 + 100 + 500 * (now - Instant{}).seconds());
    if (answer.kind() == Chunks::BUSY) {
      now = now + from_milliseconds(answer.retry_ms());
      ASSERT_EQ(kind_of(donor, 0, now), Chunks::CHUNK);
      given += 100;
    }
    if (rng.below(50) == 0) now = now + from_seconds(rng.uniform());
  }
  EXPECT_GE(static_cast<double>(given), 500 * (now - Instant{}).seconds() - 600);
}

// A message that is no request names the peer and changes nothing.
TEST_F(DonorTest, Malformed) {
  Donor donor = make(16, 1e9);
  give(donor);
  std::vector<ChunkSend> out;
  const auto refused = [&](std::string body) {
    const auto result = donor.on(kPeer, {.channel = 1, .body = std::move(body), .payload = {}}, {}, out);
    return result.ok() ? std::string() : result.error().message();
  };
  EXPECT_THAT(refused("\xff"), HasSubstr("node-5"));
  Chunks body;
  body.set_manifest("short");
  EXPECT_THAT(refused(body.SerializeAsString()), HasSubstr("no request"));
  EXPECT_THAT(refused(chunks_body(content_.manifest.id(), Chunks::CHUNK).SerializeAsString()),
              HasSubstr("a request of kind 4; expected ASK or WANT"));
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace gossamer::cluster
