// SPDX-License-Identifier: Apache-2.0
#include "base/slice.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace gossamer {
namespace {

// A slice's memory lives as long as any slice that looks at it, and is the same memory.
TEST(Slice, SharesMemory) {
  auto memory = std::make_shared<std::string>("abcdef");
  const std::weak_ptr<std::string> watch = memory;
  const char* const where = memory->data();
  Slice part;
  {
    const Slice whole(memory, std::as_bytes(std::span(memory->data(), memory->size())));
    memory.reset();
    part = whole.part(2, 3);
  }
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(joined({part}), "cde");
  EXPECT_EQ(reinterpret_cast<const char*>(part.bytes().data()), where + 2);
  part = {};
  EXPECT_TRUE(watch.expired());
}

// A copy is another memory with the same bytes.
TEST(Slice, Copies) {
  std::string text = "abc";
  const Slice slice = Slice::copy_of(std::as_bytes(std::span(text.data(), text.size())));
  text = "xyz";
  EXPECT_EQ(joined({slice, {}, Slice::of(text)}), "abcxyz");
}

// However a text is cut into slices and taken in parts, the parts give the text, and none is empty.
TEST(SliceReader, TakesEveryByteOnce) {
  constexpr std::uint64_t kSeed = 5;
  for (std::uint64_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " round " << round);
    Rng rng(kSeed, Purpose::kTest, round);
    std::string text;
    Slices slices;
    for (std::uint64_t n = rng.below(6); n > 0; --n) {
      std::string part(rng.below(5), static_cast<char>('a' + rng.below(26)));
      text += part;
      slices.push_back(Slice::of(std::move(part)));
    }
    EXPECT_EQ(joined(slices), text);
    SliceReader reader(slices);
    std::string taken;
    while (reader.left() > 0) {
      const std::uint64_t count = 1 + rng.below(reader.left());
      if (rng.below(2) == 0) {
        std::string room(count, '?');
        reader.read(std::as_writable_bytes(std::span(room.data(), room.size())));
        taken += room;
        continue;
      }
      const Slices part = reader.take(count);
      for (const Slice& slice : part) EXPECT_GT(slice.size(), 0U);
      taken += joined(part);
    }
    EXPECT_EQ(taken, text);
    EXPECT_TRUE(reader.take(0).empty());
  }
}

// Only the front is copied.
TEST(Slices, CopyFront) {
  const Slices slices = {Slice::of(std::string("ab")), Slice::of(std::string("cde"))};
  std::string room(3, '?');
  copy_front(slices, std::as_writable_bytes(std::span(room.data(), room.size())));
  EXPECT_EQ(room, "abc");
}

}  // namespace
}  // namespace gossamer
