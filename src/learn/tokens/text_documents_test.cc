// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/text_documents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/tokens/test_collected_documents.h"

namespace gossamer::tokens {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

using Files = std::vector<std::pair<std::string, std::string>>;

// What a read of some sources gave.
struct Got {
  std::vector<std::string> documents;
  std::vector<std::string> pieces;
  Result<TextReport> report = TextReport{};

  [[nodiscard]] std::string message() const { return report.ok() ? "ok" : report.error().message(); }
};

Got read(const Files& files, const std::vector<std::string>& sources, const TextOptions& options = {}) {
  host::SimDisk disk;
  for (const auto& [path, content] : files) {
    EXPECT_TRUE(disk.make_directories(host::parent(path)).ok());
    EXPECT_TRUE(host::replace_file(disk, path, content).ok());
  }
  CollectedDocuments sink;
  Got got;
  got.report = read_documents(disk, sources, options, sink);
  EXPECT_TRUE(!got.report.ok() || sink.whole());
  got.documents = sink.documents;
  got.pieces = sink.pieces;
  return got;
}

// A text of lines with characters of one to four bytes, quotes among them, and both kinds of line ends.
std::string random_text(Rng& rng, std::uint64_t characters) {
  static constexpr const char* kCharacters[] = {
      "a", "\"", "\\", "\n", "\r\n", "\xC3\xA9", "\xF0\x9F\x98\x80"};
  std::string text = "x";
  for (std::uint64_t i = 0; i < characters; ++i) text += kCharacters[rng.below(7)];
  return text;
}

std::string escaped(const std::string& text) {
  std::string json;
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (c == '\n') {
      json += "\\n";
    } else if (c == '\r') {
      json += "\\r";
    } else {
      json += c;
    }
  }
  return json;
}

// Claim: documents come whole and in order from plain files and JSON lines, packed or not, whatever the sizes
// of pieces and chunks, the workers, and when the sink runs.
TEST(TextDocuments, EveryByteComesOut) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, Purpose::kTest);
    std::vector<std::string> texts;
    std::string lines;
    for (int i = 0; i < 8; ++i) {
      texts.push_back(random_text(rng, rng.below(60)));
      lines += "{\"text\": \"" + escaped(texts.back()) + "\"}" + (i == 7 ? "" : i % 3 == 0 ? "\r\n\n" : "\n");
    }
    texts.push_back(random_text(rng, 300));
    const std::string& plain = texts.back();
    for (const auto& [tail, pack] :
         {std::pair(
              std::string(), +[](const std::string& text) { return text; }),
          std::pair(std::string(".gz"), &gzip), std::pair(std::string(".zst"), &zstd)}) {
      const Files files = {{"a.jsonl" + tail, pack(lines)}, {"b.txt" + tail, pack(plain)}};
      std::vector<std::string> pieces;
      for (const std::size_t chunk : {1U, 7U, 100U, 100'000U}) {
        host::SimCompute compute({.workers = 3, .seed = seed});
        for (const data::SinkRuns runs : {data::SinkRuns::kAlone, data::SinkRuns::kBesideParsing}) {
          const TextOptions options{.piece_bytes = 4 + 3 * seed,
                                    .read = {.limits = {.chunk_bytes = chunk},
                                             .compute = chunk == 7 ? nullptr : &compute,
                                             .sink = runs}};
          const Got got = read(files, {files[0].first, files[1].first}, options);
          ASSERT_EQ(got.message(), "ok");
          ASSERT_EQ(got.documents, texts);
          if (pieces.empty()) pieces = got.pieces;
          EXPECT_EQ(got.pieces, pieces);
          std::size_t bytes = 0;
          for (const std::string& text : texts) bytes += text.size();
          EXPECT_EQ(got.report->bytes, bytes);
        }
      }
    }
  }
}

// Claim: a piece of a JSON document is cut as one of a plain file is.
TEST(TextDocuments, PiecesAreAlike) {
  const TextOptions options{.piece_bytes = 5};
  const std::string text = "ab\ncd\n123456\xE2\x82\xAC\r\n";
  const Got plain = read({{"t", text}}, {"t"}, options);
  EXPECT_THAT(plain.pieces, ElementsAre("ab\n", "cd\n", "12345", "6\xE2\x82\xAC\r", "\n"));
  EXPECT_EQ(read({{"t.jsonl", "{\"text\": \"" + escaped(text) + "\"}"}}, {"t.jsonl"}, options).pieces,
            plain.pieces);
}

// Claim: the default piece is 1 MiB: a line of that size stays whole, and a longer one does not.
TEST(TextDocuments, DefaultPieces) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  const std::string fits = std::string(kMebibyte - 1, 'x') + "\n";
  EXPECT_THAT(read({{"t", "a\n" + fits + "b"}}, {"t"}).pieces, ElementsAre("a\n", fits, "b"));
  EXPECT_THAT(read({{"t", "x" + fits}}, {"t"}).pieces, ElementsAre(std::string(kMebibyte, 'x'), "\n"));
}

// Claim: the report has all counts. Empty documents, blank lines and hidden files make no document.
TEST(TextDocuments, Counts) {
  const Got got =
      read({{"d/a.txt", "one\r\ntwo"},
            {"d/b.jsonl", "\xEF\xBB\xBF{\"text\": \"x\\ny\"}\n\n{\"text\": \"\"}\r\n{\"text\": \"z\"}"},
            {"d/c.txt", ""},
            {"d/e.ndjson", ""},
            {"d/f.txt", "\xEF\xBB\xBF"},
            {"d/.h", "hidden"},
            {"d/.i/j", "hidden"},
            {"k", "\xEF\xBB\xBFlast\n\n"}},
           {"d", "k"});
  ASSERT_EQ(got.message(), "ok");
  EXPECT_THAT(got.documents, ElementsAre("one\r\ntwo", "x\ny", "z", "last\n\n"));
  EXPECT_EQ(got.report->files, 6U);
  EXPECT_EQ(got.report->documents, 4U);
  EXPECT_EQ(got.report->empty, 3U);
  EXPECT_EQ(got.report->hidden, 2U);
  EXPECT_EQ(got.report->skipped, 0U);
  EXPECT_EQ(got.report->bytes, 8U + 3U + 1U + 6U);
  EXPECT_EQ(got.report->lines, 2U + 4U + 2U);
  EXPECT_THAT(got.report->examples, IsEmpty());
}

// Claim: a folder's files come in the order of their paths, and a source that is named twice comes twice.
TEST(TextDocuments, Order) {
  const Files files = {{"d/b", "3"}, {"d/a/b", "2"}, {"d/a.txt", "1"}, {"c", "0"}};
  EXPECT_THAT(read(files, {"d", "c", "c"}).documents, ElementsAre("1", "2", "3", "0", "0"));
}

// Claim: "-" is standard input: a plain file, packed or not.
TEST(TextDocuments, StandardInput) {
  EXPECT_THAT(read({{"/dev/stdin", "{\"text\": 1}"}}, {"-"}).documents, ElementsAre("{\"text\": 1}"));
  EXPECT_THAT(read({{"/dev/stdin", gzip("typed")}}, {"-"}).documents, ElementsAre("typed"));
  EXPECT_EQ(read({{"/dev/stdin", ""}}, {"-"}).message(),
            "stdin: the file holds no text: got an empty file; expected at least one document that is not "
            "empty; check that this is the right one");
}

// Claim: a source without text is an error that says what is there, though other sources have text.
TEST(TextDocuments, RefusesSourcesWithoutText) {
  const auto got = [](const Files& files, const std::string& source) {
    Files all = files;
    all.emplace_back("good", "text");
    const Got result = read(all, {"good", source});
    EXPECT_EQ(result.report.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(result.report.error().where, source);
    return result.report.error().what + ": " + result.report.error().got;
  };
  EXPECT_EQ(got({{"t", ""}}, "t"), "the file holds no text: an empty file");
  EXPECT_EQ(got({{"t", "\xEF\xBB\xBF"}}, "t"), "the file holds no text: an empty file");
  EXPECT_EQ(got({{"t", gzip("")}}, "t"), "the file holds no text: an empty file");
  EXPECT_EQ(got({{"t.jsonl", ""}}, "t.jsonl"), "the file holds no text: an empty file");
  EXPECT_EQ(got({{"t.jsonl", "\n \n"}}, "t.jsonl"), "the file holds no text: blank lines");
  EXPECT_EQ(got({{"t.jsonl", "{\"text\": \"\"}\n"}}, "t.jsonl"), "the file holds no text: 1 empty document");
  EXPECT_EQ(got({{"t/.a", "x"}}, "t"), "the folder holds no text: 0 files and 1 hidden name");
  EXPECT_EQ(got({{"t/a", ""}, {"t/b.jsonl", "{\"text\": \"\"}"}}, "t"),
            "the folder holds no text: 2 files and 2 empty documents");
  const Got bad = read({{"t/a", "\xFF"}, {"t/b.jsonl", "5\n6"}}, {"t"}, {.read = {.skip_bad = 3}});
  EXPECT_THAT(bad.message(), HasSubstr("t: the folder holds no text: got 2 files and 3 bad ones;"));
  EXPECT_EQ(read({}, {"missing"}).report.error().kind, ErrorKind::kFailed);
}

// Claim: a bad plain file is refused with its place, whatever of it the sink had.
TEST(TextDocuments, RefusesBadFiles) {
  EXPECT_EQ(
      read({{"t", "one\ntw\xC3"}}, {"t"}, {.piece_bytes = 4}).message(),
      "t:2:3: the text is not UTF-8: got '\\xC3'; expected text in UTF-8; mend the file, or use --skip-bad "
      "N to leave out up to N bad files and lines");
  EXPECT_EQ(read({{"t", std::string("one\n\0", 5)}}, {"t"}).message(),
            "t:2:1: the file is not text: got a zero byte; expected text in UTF-8; mend the file, or use "
            "--skip-bad N to leave out up to N bad files and lines");
}

// Claim: what can be read only once is never left out: standard input, and what has no size.
TEST(TextDocuments, RefusesBadTextThatIsReadOnce) {
  const std::string once =
      ":1:2: the text is not UTF-8: got '\\xFF'; expected text in UTF-8; mend the text; what can be read "
      "only "
      "once cannot be left out";
  const Files input = {{"/dev/stdin", "a\xFF"}};
  EXPECT_EQ(read(input, {"-"}).message(), "stdin" + once);
  EXPECT_EQ(read(input, {"-"}, {.read = {.skip_bad = 5}}).message(), "stdin" + once);
  EXPECT_EQ(read(input, {"-"}, {.read = {.skip_bad = 2, .skipped_before = 2}}).message(), "stdin" + once);
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "pipe", "a\xFF").ok());
  ASSERT_TRUE(host::replace_file(disk, "good", "a").ok());
  for (const std::string name : {"pipe", "good"}) {
    constexpr std::uint64_t kSize = 1;  // the operation behind list()
    disk.restart_count({.fail_at_operation = kSize});
    CollectedDocuments sink;
    const std::vector<std::string> sources = {name};
    const auto report = read_documents(disk, sources, {.read = {.skip_bad = 5}}, sink);
    EXPECT_EQ(report.ok() ? "ok" : report.error().message(), name == "good" ? "ok" : name + once);
  }
}

// Claim: a bad line of JSON is refused with its place in the whole file, whatever the chunks.
TEST(TextDocuments, RefusesBadLines) {
  const auto message = [](const std::string& line) {
    return read({{"t.jsonl", "{\"text\": \"a\"}\n\n" + line + "\n{\"text\": \"b\"}\n"}}, {"t.jsonl"},
                {.read = {.limits = {.line_bytes = 50, .chunk_bytes = 9}}})
        .message();
  };
  EXPECT_EQ(
      message("[]"),
      "t.jsonl:3:1: the line is not a document: got a list; expected an object with a string \"text\"; mend "
      "the line, or use --skip-bad N to leave out up to N bad lines");
  EXPECT_THAT(message("{\"text\": \"\xFF\"}"), HasSubstr("t.jsonl:3:11: the text is not UTF-8"));
  EXPECT_THAT(message("{\"text\": \"" + std::string(50, 'x') + "\"}"),
              HasSubstr("t.jsonl:3:1: the line is too long: got more than 50 bytes"));
  EXPECT_THAT(message("{\"text\": \"" + std::string(5000, 'x') + "\"}"),
              HasSubstr("t.jsonl:3:1: the line is too long"));
  EXPECT_EQ(message("{\"text\": \"" + std::string(38, 'x') + "\"}"), "ok");
}

// Claim: up to skip_bad bad lines and files, counted over all sources, are left out without a trace in the
// sink, and reported. One more is an error.
TEST(TextDocuments, LeavesOutBadOnes) {
  const Files files = {{"d/a", "good"},
                       {"d/b", "bad from here: \xFF\n"},
                       {"d/c.jsonl", "{\"text\": \"x\"}\n7\n{\"text\": \"y\"}\n{}\n"},
                       {"e", std::string("\0", 1)},
                       {"f", "end"}};
  const std::vector<std::string> sources = {"d/a", "d", "f"};
  const Got got = read(files, sources, {.piece_bytes = 4, .read = {.skip_bad = 3}});
  ASSERT_EQ(got.message(), "ok");
  EXPECT_THAT(got.documents, ElementsAre("good", "good", "x", "y", "end"));
  EXPECT_EQ(got.report->skipped, 3U);
  EXPECT_EQ(got.report->files, 4U);
  EXPECT_EQ(got.report->lines, 1U + 1U + 4U + 1U);
  ASSERT_EQ(got.report->examples.size(), 3U);
  EXPECT_EQ(got.report->examples[0].where, "d/b:1:16");
  EXPECT_EQ(got.report->examples[1].where, "d/c.jsonl:2:1");
  EXPECT_EQ(got.report->examples[2].where, "d/c.jsonl:4:1");
  EXPECT_THAT(read(files, sources, {.read = {.skip_bad = 2}}).message(),
              HasSubstr("d/c.jsonl:4:1: a line has no \"text\": got no key; expected an object with a string "
                        "\"text\"; bad line number 3, and --skip-bad 2 allows no more"));
  EXPECT_THAT(
      read(files, {"d", "e"}, {.read = {.skip_bad = 3}}).message(),
      HasSubstr("e:1:1: the file is not text: got a zero byte; expected text in UTF-8; bad line number 4"));
  EXPECT_THAT(read(files, {"d", "e"}, {.read = {.skip_bad = 3}}).documents, ElementsAre("good", "x", "y"));
}

// Claim: five examples of what was skipped are enough, and all are counted.
TEST(TextDocuments, KeepsFiveExamples) {
  const Got got = read({{"a.jsonl", "1\n2\n3\n"}, {"b.jsonl", "4\n5\n6\n7\n{\"text\": \"x\"}"}, {"d/a", "y"}},
                       {"d", "b.jsonl"}, {.read = {.skip_bad = 9}});
  ASSERT_EQ(got.message(), "ok");
  EXPECT_EQ(got.report->skipped, 4U);
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += "7\n";
  const Got many = read({{"d/a.jsonl", "1\n2\n{\"text\": \"x\"}"}, {"d/b.jsonl", lines}}, {"d"},
                        {.read = {.skip_bad = 11}});
  ASSERT_EQ(many.message(), "ok");
  EXPECT_EQ(many.report->skipped, 11U);
  EXPECT_EQ(many.report->examples.size(), data::ReadReport::kMaxExamples);
  EXPECT_EQ(many.report->examples.back().where, "d/b.jsonl:3:1");
}

// Claim: a damaged archive ends the read, whatever may be skipped.
TEST(TextDocuments, DamagedArchivesEndTheRead) {
  std::string packed = gzip("some text that is cut off");
  packed.resize(20);
  for (const char* name : {"d/a.gz", "d/a.jsonl.gz"}) {
    const Got got = read({{"d/a", "x"}, {name, packed}}, {"d"}, {.read = {.skip_bad = 9}});
    EXPECT_THAT(got.message(), HasSubstr(std::string(name) + ": cannot unpack the gzip archive"));
  }
}

// Claim: an error of the sink, at any of its calls, ends the read and is returned as it is.
TEST(TextDocuments, ErrorsOfTheSinkEndTheRead) {
  class Refusing final : public DocumentSink {
   public:
    explicit Refusing(int calls) : left_(calls) {}
    Result<void> begin() override { return call(); }
    Result<void> piece(std::string_view /*text*/) override { return call(); }
    Result<void> end() override { return call(); }
    [[nodiscard]] int left() const { return left_; }

   private:
    Result<void> call() {
      if (left_-- > 0) return {};
      return Error{.kind = ErrorKind::kFailed, .what = "enough"};
    }
    int left_;
  };
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "a", "abcd\nefgh\n").ok());
  ASSERT_TRUE(host::replace_file(disk, "b.jsonl", "{\"text\": \"x\"}\n{\"text\": \"y\"}\n").ok());
  const std::vector<std::string> sources = {"a", "b.jsonl"};
  constexpr int kCalls = 4 + 3 + 3;
  for (int calls = 0; calls <= kCalls; ++calls) {
    Refusing sink(calls);
    const auto report = read_documents(disk, sources, {.piece_bytes = 5, .read = {.skip_bad = 9}}, sink);
    EXPECT_EQ(report.ok(), calls == kCalls) << calls;
    if (report.ok()) continue;
    EXPECT_EQ(report.error().what, "enough");
    EXPECT_EQ(sink.left(), -1);
  }
}

// Claim: an error of the disk at any operation ends the read, also where bad files may be skipped.
TEST(TextDocuments, ErrorsOfTheDiskEndTheRead) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("d").ok());
  ASSERT_TRUE(host::replace_file(disk, "d/a", "abcd\nefgh\n").ok());
  ASSERT_TRUE(host::replace_file(disk, "d/b.jsonl", "{\"text\": \"x\"}\n").ok());
  const std::vector<std::string> sources = {"d"};
  for (const std::uint64_t skip : {0U, 5U}) {
    CollectedDocuments whole;
    disk.restart_count({});
    ASSERT_TRUE(read_documents(disk, sources, {.read = {.skip_bad = skip}}, whole).ok());
    const std::uint64_t operations = disk.operations();
    for (std::uint64_t k = 0; k < operations; ++k) {
      disk.restart_count({.crash_at_operation = k});
      CollectedDocuments sink;
      const auto report = read_documents(disk, sources, {.read = {.skip_bad = skip}}, sink);
      ASSERT_FALSE(report.ok()) << k;
      EXPECT_EQ(report.error().kind, ErrorKind::kFailed);
    }
  }
}

// Claim: progress rises over all sources to their sums, and its error ends the read.
TEST(TextDocuments, TellsProgress) {
  const Files files = {{"a", "abcd\nefgh\n"}, {"b.jsonl", "{\"text\": \"x\"}\n"}, {"c", "end"}};
  data::ReadProgress last;
  std::size_t calls = 0;
  TextOptions options{.piece_bytes = 5};
  options.read.progress = [&](const data::ReadProgress& now) -> Result<void> {
    EXPECT_GE(now.bytes, last.bytes);
    EXPECT_GE(now.records, last.records);
    last = now;
    ++calls;
    return {};
  };
  const Got got = read(files, {"a", "b.jsonl", "c"}, options);
  ASSERT_EQ(got.message(), "ok");
  EXPECT_EQ(last.bytes, got.report->bytes);
  EXPECT_EQ(last.records, 2U);  // the last document has not ended when its last piece is told of
  const std::size_t all = calls;
  EXPECT_GE(all, 4U);
  for (std::size_t most = 0; most < all; ++most) {
    calls = 0;
    options.read.progress = [&](const data::ReadProgress& /*now*/) -> Result<void> {
      if (calls++ < most) return {};
      return Error{.kind = ErrorKind::kFailed, .what = "stopped"};
    };
    EXPECT_EQ(read(files, {"a", "b.jsonl", "c"}, options).message(), "stopped");
  }
}

}  // namespace
}  // namespace gossamer::tokens
