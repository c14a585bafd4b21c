// SPDX-License-Identifier: Apache-2.0
#include "cluster/chunks/manifest.h"

#include <gmock/gmock.h>
#include <gossamer/chunks.pb.h>
#include <gtest/gtest.h>

#include <string>

#include "cluster/chunks/test_content.h"

namespace gossamer::cluster {
namespace {

using ::testing::HasSubstr;

// A manifest survives encoding, and its chunks are the content in order, for all small sizes and chunks. Each
// chunk matches itself and nothing else.
TEST(Manifest, RoundTrip) {
  for (std::uint64_t size = 0; size < 20; ++size) {
    for (std::uint64_t chunk_bytes = 1; chunk_bytes < 8; ++chunk_bytes) {
      const Content content = make_content(size, chunk_bytes, size);
      const auto again = Manifest::decode({content.manifest.encoded()});
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(again->id(), content.manifest.id());
      EXPECT_EQ(again->name(), "weights");
      EXPECT_EQ(again->bytes(), size);
      std::string all;
      for (std::uint64_t chunk = 0; chunk < again->chunks(); ++chunk) {
        std::string bytes = joined({content.chunk(chunk)});
        all += bytes;
        EXPECT_TRUE(again->matches(chunk, {Slice::of(bytes)}));
        EXPECT_FALSE(again->matches(chunk, {Slice::of(bytes + "x")}));
        bytes[0] = static_cast<char>(bytes[0] ^ 1);
        EXPECT_FALSE(again->matches(chunk, {Slice::of(bytes)}));
      }
      EXPECT_EQ(all, content.bytes);
    }
  }
}

// A change of any bit gives another id, or bytes that are no manifest.
TEST(Manifest, TheIdCoversEveryBit) {
  const Content content = make_content(50, 20, 1);
  const std::string encoded = joined({content.manifest.encoded()});
  for (std::size_t bit = 0; bit < 8 * encoded.size(); ++bit) {
    std::string changed = encoded;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const auto other = Manifest::decode({Slice::of(changed)});
    EXPECT_TRUE(!other.ok() || other->id() != content.manifest.id()) << bit;
  }
}

// Bytes that are no manifest are refused with the reason. So are numbers that would overflow.
TEST(Manifest, Refusals) {
  const auto refused = [](std::uint64_t bytes, std::uint64_t chunk_bytes, std::size_t hash_bytes) {
    wire::Manifest wire;
    wire.set_bytes(bytes);
    wire.set_chunk_bytes(chunk_bytes);
    wire.set_hashes(std::string(hash_bytes, 'h'));
    const auto manifest = Manifest::decode({Slice::of(wire.SerializeAsString())});
    EXPECT_FALSE(manifest.ok());
    return manifest.ok() ? std::string() : manifest.error().message();
  };
  EXPECT_THAT(refused(10, 0, 32), HasSubstr("chunks of 0 bytes"));
  EXPECT_THAT(refused(10, (16U << 20) + 1, 32), HasSubstr("expected 1 to 16777216"));
  EXPECT_THAT(refused(10, 10, 0), HasSubstr("0 bytes of hashes; expected 1 hashes"));
  EXPECT_THAT(refused(10, 5, 65), HasSubstr("65 bytes of hashes; expected 2 hashes"));
  EXPECT_THAT(refused(0, 5, 32), HasSubstr("expected 0 hashes"));
  EXPECT_THAT(refused(~0ULL, 1, 64), HasSubstr("expected 18446744073709551615 hashes"));
  const auto garbage = Manifest::decode({Slice::of(std::string("\xff\xff"))});
  EXPECT_THAT(garbage.error().message(), HasSubstr("2 bytes that are none"));
}

}  // namespace
}  // namespace gossamer::cluster
