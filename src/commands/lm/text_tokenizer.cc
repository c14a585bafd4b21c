// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/text_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/human_bytes.h"
#include "base/printable.h"
#include "commands/lm/lm_text.h"
#include "host/api/files.h"
#include "learn/tokens/byte_tokenizer.h"
#include "learn/tokens/line_sample.h"
#include "learn/tokens/sentencepiece_tokenizer.h"
#include "learn/tokens/text_documents.h"
#include "learn/tokens/token_file.h"
#include "run/progress.h"

namespace gossamer::commands {
namespace {

using Made = Result<std::unique_ptr<tokens::Tokenizer>>;

constexpr std::string_view kBytes = "bytes";
constexpr std::string_view kPieces = tokens::kSentencePieceName;
// More text does not change which pieces of words are frequent.
constexpr std::size_t kSampleBytes = std::size_t{32} << 20;

class SampleSink final : public tokens::DocumentSink {
 public:
  Result<void> begin() override { return {}; }
  Result<void> piece(std::string_view text) override {
    sample_.add(text);
    return {};
  }
  Result<void> end() override { return {}; }
  [[nodiscard]] std::vector<std::string> take() { return sample_.take(); }

 private:
  tokens::LineSample sample_{kSampleBytes};
};

Error read_twice(const TokenizerWanted& wanted, const std::string& source) {
  return {.kind = ErrorKind::kUsage,
          .where = wanted.word_key,
          .what = "a tokenizer is trained on the text before the text is read",
          .got = fmt::format("{}, which can be read only once", quote(source)),
          .expected = "a file or a folder",
          .fix = fmt::format("write the text to a file first, or give {} as {}", kBytes, wanted.word_key)};
}

Error impossible_vocabulary(const TokenizerWanted& wanted) {
  return {.kind = ErrorKind::kUsage,
          .where = wanted.vocabulary_key,
          .what = "no tokenizer that is trained has so many tokens",
          .got = fmt::format("{}", *wanted.vocabulary),
          .expected = fmt::format("{} to {}", tokens::kLeastVocabulary, tokens::kMostVocabulary)};
}

Error vocabulary_for_nothing(const TokenizerWanted& wanted, const std::string& tokens) {
  return {
      .kind = ErrorKind::kUsage,
      .where = wanted.vocabulary_key,
      .what = "the number of tokens is for a tokenizer that is trained",
      .got = fmt::format("{}, and {}", *wanted.vocabulary, tokens),
      .expected = fmt::format("{} for a text", kPieces),
      .fix = fmt::format("leave {} out{}, or give {} as {}", wanted.vocabulary_key,
                         wanted.vocabulary_key.starts_with("--") ? "" : " (where a config gives it: auto)",
                         kPieces, wanted.word_key)};
}

// Whether a number of tokens is asked for that does nothing where no tokenizer is trained.
bool has_number(const TokenizerWanted& wanted) { return wanted.first && wanted.vocabulary.has_value(); }

Error no_tokenizer(const TokenizerWanted& wanted, std::string_view instead) {
  return {.kind = ErrorKind::kUsage,
          .where = wanted.word_key,
          .what = "there is no such tokenizer",
          .got = fmt::format("{}, which is {}", quote(wanted.word), instead),
          .expected = fmt::format("'{}', '{}', or a file with a model of SentencePiece, or its folder",
                                  kBytes, kPieces)};
}

Error not_trained(const TokenizerWanted& wanted, Error error) {
  const bool few = error.kind == ErrorKind::kUsage;  // tokens for the characters of the text
  error.where = few ? wanted.vocabulary_key : wanted.word_key;
  error.fix = fmt::format("give {} as {}", kBytes, wanted.word_key);
  if (few) error.fix = fmt::format("raise {}, or {}", wanted.vocabulary_key, error.fix);
  return error;
}

Made as_tokenizer(Result<std::unique_ptr<tokens::SentencePieceTokenizer>> loaded) {
  if (!loaded.ok()) return loaded.error();
  return std::unique_ptr<tokens::Tokenizer>(*std::move(loaded));
}

Made load_file(const run::NodeHost& host, const OpenPieces& open_pieces, const std::string& path) {
  auto model = host::read_text(host.disk, path, tokens::kMostTokenizerBytes);
  if (!model.ok()) return model.error();
  return load_tokenizer(host, open_pieces, std::string(kPieces), *std::move(model), path);
}

Error stopped(const TokenizerWanted& wanted) {
  return {.kind = ErrorKind::kFailed, .where = wanted.word_key, .what = "stopped"};
}

Result<std::vector<std::string>> sample_of(const run::NodeHost& host, const TokenizerWanted& wanted) {
  run::Progress bar(host.console, host.clock, "sampling", host.verbosity);
  const auto progress = [&](const data::ReadProgress& now) -> Result<void> {
    if (wanted.stop && wanted.stop()) return stopped(wanted);
    if (bar.due()) bar.update({.done = now.bytes / 1'000'000, .total = 0, .unit = "MB", .detail = ""});
    return {};
  };
  SampleSink sink;
  const auto read = tokens::read_documents(host.disk, wanted.sources,
                                           {.read = {.skip_bad = wanted.skip_bad,
                                                     .compute = &host.compute,
                                                     .sink = data::SinkRuns::kBesideParsing,
                                                     .progress = progress}},
                                           sink);
  bar.finish();
  if (!read.ok()) return read.error();
  return sink.take();
}

// With a slash behind it a path leads to a folder alone.
Result<bool> is_folder(host::Disk& disk, const std::string& path) { return disk.exists(path + "/"); }

// A pipe has no size, and is no folder. What is not there is told by the reader.
Result<bool> can_be_read_twice(host::Disk& disk, const std::string& source) {
  if (source == "-" || source == "/dev/stdin") return false;
  if (disk.file_size(source).ok()) return true;
  const auto folder = is_folder(disk, source);
  if (!folder.ok() || *folder) return folder;
  const auto there = disk.exists(source);
  return there.ok() ? Result<bool>(!*there) : there.error();
}

Made train(const run::NodeHost& host, const OpenPieces& open_pieces, const TokenizerWanted& wanted) {
  const std::uint32_t vocabulary = wanted.vocabulary.value_or(tokens::kUsualVocabulary);
  if (vocabulary < tokens::kLeastVocabulary || vocabulary > tokens::kMostVocabulary)
    return impossible_vocabulary(wanted);
  for (const std::string& source : wanted.sources) {
    const auto twice = can_be_read_twice(host.disk, source);
    if (!twice.ok()) return twice.error();
    if (!*twice) return read_twice(wanted, source);
  }
  const auto module = open_pieces(host);
  if (!module.ok()) return module.error();
  const Instant begin = host.clock.now();
  const auto lines = sample_of(host, wanted);
  if (!lines.ok()) return lines.error();
  std::uint64_t bytes = 0;
  for (const std::string& line : *lines) bytes += line.size();
  host.say(fmt::format("training the tokenizer on {} of text", human_bytes(bytes)));
  auto model = tokens::train_sentencepiece(**module, *lines, vocabulary, wanted.stop);
  if (wanted.stop && wanted.stop()) return stopped(wanted);
  if (!model.ok()) return not_trained(wanted, model.error());
  auto made = as_tokenizer(tokens::SentencePieceTokenizer::load(**module, *std::move(model), wanted.kept));
  if (!made.ok()) return made;
  host.say(fmt::format("a tokenizer of {} tokens, trained on {} of text in {:.1f} s",
                       run::human_count((*made)->vocabulary()), human_bytes(bytes),
                       (host.clock.now() - begin).seconds()));
  return made;
}

// The model in a file, or in the folder of imported tokens or of a model.
Made take_trained(const run::NodeHost& host, const OpenPieces& open_pieces, const TokenizerWanted& wanted) {
  if (wanted.word.empty()) return no_tokenizer(wanted, "no name");
  const std::string inside = fmt::format("{}/{}", wanted.word, tokens::kTokenizerFile);
  for (const std::string& path : {inside, wanted.word}) {
    const auto there = host.disk.exists(path);
    if (!there.ok()) return there.error();
    if (!*there) continue;
    if (has_number(wanted)) return vocabulary_for_nothing(wanted, "a tokenizer that is trained already");
    const auto folder = is_folder(host.disk, path);
    if (!folder.ok()) return folder.error();
    if (*folder && path == wanted.word)
      return no_tokenizer(wanted, fmt::format("a folder without {}", tokens::kTokenizerFile));
    return load_file(host, open_pieces, path);
  }
  return no_tokenizer(wanted, "no file, either");
}

// The tokenizer of tokens that are imported already.
Made take_theirs(const run::NodeHost& host, const OpenPieces& open_pieces, const TokenizerWanted& wanted,
                 const std::string& token_file) {
  const bool pieces = wanted.word == kPieces;
  if (has_number(wanted) && !pieces)
    return vocabulary_for_nothing(wanted, fmt::format("tokens in {}", token_file));
  auto theirs = tokenizer_beside(host, open_pieces, token_file);
  if (!theirs.ok() || !pieces) return theirs;
  const bool other = (*theirs)->name() != kPieces;
  if (other || (wanted.vocabulary && (*theirs)->vocabulary() > *wanted.vocabulary)) {
    host.warn(fmt::format("{} has tokens already, of {}{}: {} counts for texts alone", token_file,
                          (*theirs)->name(),
                          other ? std::string() : fmt::format(", {} of them", (*theirs)->vocabulary()),
                          other ? wanted.word_key : wanted.vocabulary_key));
  }
  return theirs;
}

// The token file that the user names as the text.
Result<std::optional<std::string>> imported_tokens(host::Disk& disk, const TokenizerWanted& wanted) {
  const bool one = wanted.sources.size() == 1 && !wanted.sources.front().empty() && !wanted.texts_alone;
  return one ? named_token_file(disk, wanted.sources.front())
             : Result<std::optional<std::string>>(std::nullopt);
}

// What is to be made where nothing is kept.
Made make_new(const run::NodeHost& host, const OpenPieces& open_pieces, const TokenizerWanted& wanted) {
  if (wanted.word != kBytes && wanted.word != kPieces) return take_trained(host, open_pieces, wanted);
  const auto named = imported_tokens(host.disk, wanted);
  if (!named.ok()) return named.error();
  if (*named) return take_theirs(host, open_pieces, wanted, **named);
  if (wanted.word == kBytes && has_number(wanted)) return vocabulary_for_nothing(wanted, "tokens of bytes");
  if (wanted.word == kBytes)
    return std::unique_ptr<tokens::Tokenizer>(std::make_unique<tokens::ByteTokenizer>());
  return train(host, open_pieces, wanted);
}

// `why`: what came of making it again.
Error lost_tokenizer(host::Disk& disk, const TokenizerWanted& wanted, std::string why) {
  const std::string model =
      fmt::format("{}/model/{}", host::parent(host::parent(wanted.kept)), tokens::kTokenizerFile);
  const auto copy = host::read_text(disk, model, tokens::kMostTokenizerBytes);
  const bool whole = copy.ok() && tokens::sentencepiece_digest(*copy) == *wanted.digest;
  return {.kind = ErrorKind::kBadData,
          .where = wanted.kept,
          .what = "the tokenizer of the run is gone or damaged, and is not made again",
          .got = std::move(why),
          .expected = fmt::format("the one that made the run's tokens, XXH3-64 {:016x}", *wanted.digest),
          .fix = whole ? fmt::format("put back what is in {}, and resume", model)
                       : "put the file back, or the text of the run's beginning, and resume"};
}

// The tokenizer of tokens that are there: what is kept, or the same once more.
Made as_before(const run::NodeHost& host, const OpenPieces& open_pieces, const TokenizerWanted& wanted,
               bool kept) {
  const bool of_bytes = *wanted.digest == tokens::ByteTokenizer().digest();
  if (kept && !of_bytes) {
    auto loaded = load_file(host, open_pieces, wanted.kept);
    if (loaded.ok() ? (*loaded)->digest() == *wanted.digest : loaded.error().kind != ErrorKind::kBadData)
      return loaded;
  }
  auto made = make_new(host, open_pieces, wanted);
  if (made.ok() && (*made)->digest() == *wanted.digest) return made;
  // Imported tokens have it, too, where the word is a file that is gone.
  if (const auto named = imported_tokens(host.disk, wanted); named.ok() && *named) {
    auto theirs = tokenizer_beside(host, open_pieces, **named);
    if (theirs.ok() && (*theirs)->digest() == *wanted.digest) return theirs;
  }
  if (wanted.stop && wanted.stop()) return stopped(wanted);
  // A module that is missing says nothing about the file.
  if (!of_bytes) {
    if (const auto module = open_pieces(host); !module.ok()) return module.error();
  }
  return lost_tokenizer(
      host.disk, wanted,
      made.ok() ? fmt::format("another one, XXH3-64 {:016x}", (*made)->digest()) : made.error().message());
}

}  // namespace

Made load_tokenizer(const run::NodeHost& host, const OpenPieces& open_pieces, const std::string& name,
                    std::string model, const std::string& where) {
  if (name == kBytes) return std::unique_ptr<tokens::Tokenizer>(std::make_unique<tokens::ByteTokenizer>());
  if (name != kPieces) {
    return Error{.kind = ErrorKind::kRefused,
                 .where = where,
                 .what = "this program does not have the tokenizer of the model",
                 .got = quote(name),
                 .expected = fmt::format("'{}' or '{}'", kBytes, kPieces),
                 .fix = "use the version of gossamer that wrote it, or train again"};
  }
  const auto module = open_pieces(host);
  if (!module.ok()) return module.error();
  return as_tokenizer(tokens::SentencePieceTokenizer::load(**module, std::move(model), where));
}

Made tokenizer_beside(const run::NodeHost& host, const OpenPieces& open_pieces,
                      const std::string& token_file) {
  // A folder of a user's may have a tokenizer of something else, too. What is wrong with the file is told by
  // its reader.
  const auto found = tokens::TokenFile::read_identity(host.disk, token_file);
  auto bytes = std::make_unique<tokens::ByteTokenizer>();
  if (found.ok() && found->tokenizer_digest == bytes->digest())
    return std::unique_ptr<tokens::Tokenizer>(std::move(bytes));
  const std::string path = fmt::format("{}/{}", host::parent(token_file), tokens::kTokenizerFile);
  const auto there = host.disk.exists(path);
  if (!there.ok()) return there.error();
  if (*there) return load_file(host, open_pieces, path);
  return std::unique_ptr<tokens::Tokenizer>(std::move(bytes));
}

Made tokenizer_of_text(const run::NodeHost& host, const OpenPieces& open_pieces,
                       const TokenizerWanted& wanted) {
  const auto kept = host.disk.exists(wanted.kept);
  if (!kept.ok()) return kept.error();
  if (wanted.digest) return as_before(host, open_pieces, wanted, *kept);
  if (*kept) {
    auto loaded = load_file(host, open_pieces, wanted.kept);
    if (loaded.ok() || loaded.error().kind != ErrorKind::kBadData) return loaded;
    host.warn(fmt::format("the tokenizer is made again: {}", loaded.error().message()));
  }
  return make_new(host, open_pieces, wanted);
}

Result<void> keep_tokenizer(host::Disk& disk, const std::string& path, const tokens::Tokenizer& tokenizer) {
  if (tokenizer.model().empty()) return {};
  const auto there = disk.exists(path);
  if (!there.ok()) return there.error();
  if (*there) {
    const auto kept = host::read_text(disk, path, tokens::kMostTokenizerBytes);
    if (kept.ok() && *kept == tokenizer.model()) return {};
  }
  if (auto made = disk.make_directories(host::parent(path)); !made.ok()) return made;
  return host::replace_file(disk, path, tokenizer.model());
}

}  // namespace gossamer::commands
