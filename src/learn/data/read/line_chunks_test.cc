// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/line_chunks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "host/sim/compute.h"

namespace gossamer::data {
namespace {

// Whole lines as chunks deliver them; an oversized line is "<long>", whether it was left out or delivered.
std::vector<std::string> lines_of(const std::string& text, const ReadLimits& limits) {
  const auto source = memory_source("text", text);
  LineChunks chunks(*source, limits);
  std::vector<std::string> lines;
  Chunk chunk;
  for (;;) {
    const auto got = chunks.next(chunk);
    EXPECT_TRUE(got.ok());
    if (!*got) break;
    if (chunk.oversized) lines.emplace_back("<long>");
    for (std::string_view rest = chunk.text; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      EXPECT_NE(end, std::string_view::npos);
      lines.emplace_back(end > limits.line_bytes ? "<long>" : rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    EXPECT_LE(chunk.buffer.size(), limits.line_bytes + 2 * limits.chunk_bytes + 8192);
  }
  EXPECT_EQ(chunks.bytes(), text.size());
  return lines;
}

// Chunks hold the same lines as the text, for every chunk size.
TEST(LineChunks, LoseNothing) {
  for (const std::string text :
       {"", "a", "a\n", "\n", "\n\n", "a\nbb\n\nccc", "a\r\nb", "long line without an end"}) {
    std::vector<std::string> expected;
    for (std::string rest = text; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      expected.push_back(rest.substr(0, end));
      rest = end == std::string::npos ? "" : rest.substr(end + 1);
    }
    for (std::size_t size = 1; size <= 30; ++size) {
      EXPECT_EQ(lines_of(text, {.chunk_bytes = size}), expected) << text << " in chunks of " << size;
    }
  }
}

// A line beyond the limit is read past, at the start, in the middle and at the end.
TEST(LineChunks, ReadPastOversizedLines) {
  const std::string xs(50'000, 'x');
  const std::vector<std::string> expected = {"<long>", "a", "<long>", "b", "<long>"};
  for (std::size_t size = 1; size <= 10; ++size) {
    EXPECT_EQ(lines_of(xs + "\na\n" + xs + "\nb\n" + xs, {.line_bytes = 20, .chunk_bytes = size}), expected)
        << size;
  }
}

// A byte order mark is no part of the first line.
TEST(LineChunks, DropTheByteOrderMark) {
  EXPECT_EQ(lines_of("\xEF\xBB\xBF"
                     "a\nb",
                     {.chunk_bytes = 1}),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(lines_of("\xEF\xBB\xBF", {}).empty());
}

// The first line can be looked at and dropped without disturbing the rest.
TEST(LineChunks, FirstLine) {
  for (std::size_t size = 1; size <= 10; ++size) {
    const auto source = memory_source("text", "head\r\nbody\n");
    LineChunks chunks(*source, {.chunk_bytes = size});
    EXPECT_EQ(*chunks.first_line(), "head");
    chunks.drop_first_line();
    Chunk chunk;
    ASSERT_TRUE(*chunks.next(chunk));
    EXPECT_EQ(chunk.text, "body\n");
    EXPECT_FALSE(*chunks.next(chunk));
  }
}

// Rounds drain every chunk once, in order, whichever worker parsed it and whenever the sink runs. Slots point
// into the chunks, as in the readers.
TEST(LineChunks, RoundsKeepTheOrder) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::to_string(i) + "\n";
  for (const SinkRuns sink : {SinkRuns::kAlone, SinkRuns::kBesideParsing}) {
    for (int workers = 1; workers <= 5; ++workers) {
      host::SimCompute compute({.workers = workers, .seed = 3});
      const auto source = memory_source("text", text);
      LineChunks chunks(*source, {.chunk_bytes = 11});
      std::vector<std::string_view> slots(round_slots(&compute));
      std::string joined;
      const auto parse = [&](const Chunk& chunk, std::size_t slot) { slots[slot] = chunk.text; };
      const auto drain = [&](std::size_t slot) -> Result<void> {
        joined += slots[slot];
        return {};
      };
      const auto after_round = []() -> Result<void> { return {}; };
      const auto done = parse_in_rounds(
          chunks, &compute, {.parse = parse, .drain = drain, .after_round = after_round, .sink = sink});
      EXPECT_TRUE(done.ok());
      EXPECT_EQ(joined, text) << workers << " workers";
    }
  }
}

// An error of a sink ends the read with it, and nothing is drained afterwards.
TEST(LineChunks, SinkErrorEndsTheRounds) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::to_string(i) + "\n";
  for (const SinkRuns sink : {SinkRuns::kAlone, SinkRuns::kBesideParsing}) {
    for (int last = 1; last <= 40; ++last) {
      host::SimCompute compute({.workers = 2, .seed = 3});
      const auto source = memory_source("text", text);
      LineChunks chunks(*source, {.chunk_bytes = 11});
      int drained = 0;
      const auto done = parse_in_rounds(chunks, &compute,
                                        {.parse = [](const Chunk&, std::size_t) {},
                                         .drain = [&](std::size_t) -> Result<void> {
                                           if (++drained < last) return {};
                                           return Error{.what = "enough"};
                                         },
                                         .after_round = []() -> Result<void> { return {}; },
                                         .sink = sink});
      ASSERT_FALSE(done.ok());
      EXPECT_EQ(done.error().what, "enough");
      EXPECT_EQ(drained, last);
    }
  }
}

}  // namespace
}  // namespace gossamer::data
