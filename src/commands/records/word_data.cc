// SPDX-License-Identifier: Apache-2.0
#include "commands/records/word_data.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "commands/records/line_copy.h"
#include "host/api/files.h"
#include "learn/data/name_table.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/word_reader.h"
#include "learn/data/text_windows.h"
#include "tensors/safetensors.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kExampleBytes = 160;

Error damaged_words(const std::string& path, std::string got) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "the words of the run are damaged",
          .got = std::move(got),
          .expected = "what the run wrote",
          .fix = "remove the file: the run reads data.train again"};
}

template <class T>
bool take(const tensors::TensorMap& tensors, const char* name, tensors::DType dtype, std::vector<T>& out) {
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.dtype != dtype || found->second.shape.size() != 1) return false;
  out.resize(found->second.bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), found->second.bytes.data(), found->second.bytes.size());
  return true;
}

// The text of the tensors, or nothing where they contradict each other.
std::optional<data::TokenText> text_of(const tensors::TensorMap& tensors) {
  data::TokenText text;
  std::vector<char> bytes;
  std::vector<std::uint64_t> begin;
  if (!take(tensors, "token", tensors::DType::kU32, text.token) ||
      !take(tensors, "count", tensors::DType::kU64, text.count) ||
      !take(tensors, "words.bytes", tensors::DType::kU8, bytes) ||
      !take(tensors, "words.begin", tensors::DType::kU64, begin)) {
    return std::nullopt;
  }
  if (begin.size() != text.count.size() + 1 || begin.front() != 0 || begin.back() != bytes.size() ||
      !std::ranges::is_sorted(begin)) {
    return std::nullopt;
  }
  for (const std::uint32_t token : text.token) {
    if (token != data::TokenText::kLineEnd && token >= text.count.size()) return std::nullopt;
  }
  // A text that a run trains on has two words in some line, and each word occurs.
  const bool unused = std::ranges::find(text.count, 0U) != text.count.end();
  if (unused || data::first_window(text) >= text.token.size()) return std::nullopt;
  for (std::size_t word = 0; word + 1 < begin.size(); ++word) {
    text.words.emplace_back(bytes.data() + begin[word], begin[word + 1] - begin[word]);
  }
  return text;
}

Result<tensors::FileDigest> write_tensors(host::Disk& disk, const std::string& path,
                                          const data::TokenText& text) {
  std::string bytes;
  std::vector<std::uint64_t> begin = {0};
  for (const std::string& word : text.words) {
    bytes += word;
    begin.push_back(bytes.size());
  }
  using tensors::DType;
  using tensors::vector_tensor;
  const std::vector<tensors::TensorSource> tensors = {
      vector_tensor("token", DType::kU32, std::span<const std::uint32_t>(text.token)),
      vector_tensor("count", DType::kU64, std::span<const std::uint64_t>(text.count)),
      vector_tensor("words.bytes", DType::kU8, std::span<const char>(bytes)),
      vector_tensor("words.begin", DType::kU64, std::span<const std::uint64_t>(begin))};
  auto file = disk.open_writable(path, host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  auto digest = tensors::write_safetensors(**file, tensors);
  if (!digest.ok()) return digest.error();
  if (auto done = (*file)->sync(); !done.ok()) return done.error();
  if (auto done = (*file)->close(); !done.ok()) return done.error();
  return *digest;
}

}  // namespace

Result<data::ReadReport> copy_words(const run::NodeHost& host, const DataImportRequest& request,
                                    const std::string& path) {
  data::NameTable words;
  auto report =
      copy_lines(host, {.request = request, .path = path, .unit = "words"},
                 [&words](data::ByteSource& source, const data::ReadOptions& options,
                          run::LineFile& file) -> Result<data::ReadReport> {
                   std::string line;
                   const auto end_line = [&]() -> Result<void> {
                     if (line.empty()) return {};
                     auto done = file.line(line);
                     line.clear();
                     return done;
                   };
                   auto read = data::read_words(source, options, [&](std::string_view word) -> Result<void> {
                     if (word.empty()) return end_line();
                     words.id(word);
                     if (!line.empty()) line += ' ';
                     line += word;
                     return {};
                   });
                   if (!read.ok()) return read;
                   if (auto done = end_line(); !done.ok()) return done.error();
                   return read;
                 });
  if (!report.ok()) return report;
  report->features = words.size();
  report->labels = words.size();
  return report;
}

Result<DataLook> look_at_words(const run::NodeHost& host, const std::string& path) {
  auto source = data::open_bytes(host.disk, path);
  if (!source.ok()) return source.error();
  DataLook look;
  data::NameTable words;
  LabelUse counts;
  std::string line;
  const auto end_line = [&] {
    if (!line.empty() && look.examples.size() < 3) look.examples.push_back(line);
    line.clear();
  };
  const auto read = data::read_words(**source, {}, [&](std::string_view word) -> Result<void> {
    if (word.empty()) {
      end_line();
      return {};
    }
    const std::uint32_t number = words.id(word);
    count_labels({&number, 1}, counts, look);
    if (look.examples.size() < 3 && line.size() < kExampleBytes) {
      line.append(line.empty() ? "" : " ").append(word);
      if (line.size() >= kExampleBytes) line += " ...";
    }
    return {};
  });
  if (!read.ok()) return read.error();
  end_line();
  look.features = words.size();
  look.labels = words.size();
  look.feature_entries = look.label_entries;
  rank_labels(counts, [&words](std::uint32_t label) { return std::string(words.name(label)); }, look);
  return look;
}

Result<data::ReadReport> import_words(const ImportJob& job) {
  const std::string& path = job.request.sources.front().path;
  auto source = data::open_bytes(job.host.disk, path);
  if (!source.ok()) return source.error();
  data::TokenTextBuilder builder;
  auto report =
      data::read_words(**source, job.options.read, [&builder](std::string_view word) -> Result<void> {
        if (word.empty()) {
          builder.end_line();
        } else {
          builder.add(word);
        }
        return {};
      });
  if (!report.ok()) return report;
  const sparse_engine::Word2vecConfig& words = job.request.words;
  const auto text = builder.finish({.min_count = words.min_count, .max_words = words.max_words});
  if (text.ok() && data::first_window(*text) < text->token.size()) {
    auto written = write_word_cache(job.host.disk, job.options.cache_path, *text);
    return written.ok() ? report : Result<data::ReadReport>(written.error());
  }
  job.progress.finish();
  if (report->skipped > 0) job.host.warn(describe_skipped(*report));
  Error error{.kind = ErrorKind::kBadData,
              .what = "nothing to train on",
              .got = "no two frequent words in one line",
              .expected = "lines of words",
              .fix = "lower word2vec.min_count, or give more text"};
  if (!text.ok()) error = text.error();
  error.where = path;
  return error;
}

Result<void> write_word_cache(host::Disk& disk, const std::string& path, const data::TokenText& text) {
  if (auto done = disk.make_directories(host::parent(path)); !done.ok()) return done;
  const auto digest = write_tensors(disk, path, text);
  if (!digest.ok()) return digest.error();
  const nlohmann::ordered_json json = {{"bytes", digest->bytes},
                                       {"xxh3", fmt::format("{:016x}", digest->xxh3)}};
  return host::replace_file(disk, path + ".json", json.dump() + "\n");
}

Result<std::optional<data::TokenText>> read_word_cache(host::Disk& disk, const std::string& path) {
  for (const std::string& part : {path, path + ".json"}) {
    const auto there = disk.exists(part);
    if (!there.ok()) return there.error();
    if (!*there) return std::optional<data::TokenText>();
  }
  const auto wanted = host::read_text(disk, path + ".json", 1000);
  if (!wanted.ok()) return wanted.error();
  const auto file = disk.map(path);
  if (!file.ok()) return file.error();
  const auto bytes = (*file)->bytes();
  const nlohmann::ordered_json got = {
      {"bytes", bytes.size()}, {"xxh3", fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()))}};
  if (got.dump() + "\n" != *wanted) return damaged_words(path, "another size or checksum");
  const auto tensors = tensors::parse_safetensors(path, bytes);
  if (!tensors.ok()) return tensors.error();
  auto text = text_of(*tensors);
  if (!text) return damaged_words(path, "tensors that contradict each other");
  return text;
}

}  // namespace gossamer::commands
