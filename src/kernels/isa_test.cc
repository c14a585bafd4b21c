// SPDX-License-Identifier: Apache-2.0
#include "kernels/isa.h"

#include <gtest/gtest.h>

namespace gossamer::kernels {
namespace {

// The best ISA is supported, and none above it is. So is every one that any x86-64-v2 machine has.
TEST(Isa, BestIsSupported) {
  EXPECT_TRUE(supported(Isa::kScalar));
  EXPECT_TRUE(supported(Isa::kSse4));
  EXPECT_TRUE(supported(best_isa()));
  for (const Isa isa : kAllIsas) EXPECT_TRUE(!supported(isa) || isa <= best_isa()) << name(isa);
}

// ISAs rise: what a CPU supports is a prefix of the list.
TEST(Isa, SupportIsAPrefix) {
  bool all_before = true;
  for (const Isa isa : kAllIsas) {
    EXPECT_TRUE(all_before || !supported(isa)) << name(isa);
    all_before = all_before && supported(isa);
  }
}

// parse_isa is the inverse of name() for what this CPU has, and refuses the rest by name.
TEST(Isa, ParsesItsNames) {
  for (const Isa isa : kAllIsas) {
    const Result<Isa> parsed = parse_isa(name(isa));
    ASSERT_EQ(parsed.ok(), supported(isa)) << name(isa);
    if (parsed.ok()) {
      EXPECT_EQ(*parsed, isa);
    } else {
      EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
      EXPECT_EQ(parsed.error().got, name(isa));
    }
  }
  const Result<Isa> automatic = parse_isa("auto");
  ASSERT_TRUE(automatic.ok());
  EXPECT_EQ(*automatic, best_isa());
}

// A wrong word is a usage error that lists the words of this CPU.
TEST(Isa, RefusesOtherWords) {
  for (const char* word : {"", "AVX2", "avx3", "auto "}) {
    const Result<Isa> parsed = parse_isa(word);
    ASSERT_FALSE(parsed.ok()) << word;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
    EXPECT_NE(parsed.error().expected.find(name(best_isa())), std::string::npos);
  }
}

// bf16 is preferred only where the CPU multiplies its pairs natively.
TEST(Isa, PrefersBf16OnlyWhereNative) {
  for (const Isa isa : kAllIsas) {
    EXPECT_EQ(preferred_element(isa) == Element::kBf16, isa == Isa::kAvx512Bf16) << name(isa);
  }
}

}  // namespace
}  // namespace gossamer::kernels
