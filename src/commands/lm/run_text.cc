// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/run_text.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/shell_word.h"
#include "commands/lm/lm_text.h"
#include "commands/run/data_sum.h"

namespace gossamer::commands {
namespace {

using Opened = std::unique_ptr<tokens::TokenFile>;

// One text of a run.
struct OneText {
  std::string key;     // "data.train"
  std::string source;  // what the user named
  std::string kept;    // the run's token file
};

std::string kept_tokens(const run::RunPaths& paths) { return paths.data() + "/train.tokens"; }

Error another_text(const RunTexts& texts, const std::string& where) {
  return {.kind = ErrorKind::kBadData,
          .where = where,
          .what = "this is not the training text that the run began with",
          .got = "tokens with another checksum",
          .expected = "the checksum in " + texts.paths.data_sum(),
          .fix = fmt::format(
              "put the text of the run's beginning{} back, and resume; another text is for a new run",
              texts.tokenizer.model().empty() ? "" : ", and its tokenizer,")};
}

// The text again, where it was.
bool can_be_read(const RunTexts& texts, const std::string& source) {
  if (source.empty() || source == "-" || source == "/dev/stdin") return false;
  const auto there = texts.host.disk.exists(source);
  return there.ok() && *there;
}

Result<Opened> import_into(const RunTexts& texts, const OneText& text) {
  const auto report = import_text(
      texts.host, texts.tokenizer,
      {.sources = {text.source}, .path = text.kept, .skip_bad = texts.skip_bad, .stop = texts.stop});
  if (!report.ok()) return report.error();
  texts.host.say(fmt::format("{}: {}", text.key, text_line(*report)));
  return open_tokens(texts.host, text.kept, texts.tokenizer);
}

// A token file of the user's, where it lies.
Result<Opened> take_named(const RunTexts& texts, const std::string& key, const std::string& path) {
  auto file = open_tokens(texts.host, path, texts.tokenizer);
  if (file.ok()) texts.host.say(fmt::format("{}: {}, in {}", key, text_line(**file), path));
  return file;
}

// The token file of an earlier part of the run; nothing where there is none.
Result<Opened> open_kept(const RunTexts& texts, const OneText& text) {
  const auto there = texts.host.disk.exists(text.kept);
  if (!there.ok()) return there.error();
  return *there ? open_tokens(texts.host, text.kept, texts.tokenizer) : Result<Opened>(Opened());
}

// Whether the token file of the run is made anew, for it is not what it was. The error says why not.
Result<void> may_import_again(const RunTexts& texts, const OneText& text, Error damaged) {
  const auto known = has_data_sum(texts.host.disk, texts.paths);
  if (!known.ok()) return known.error();
  if (!can_be_read(texts, text.source)) {
    damaged.fix = fmt::format("put the text of {} back at {}, and resume: it is read again", text.key,
                              text.source.empty() ? "its place" : text.source);
    return damaged;
  }
  if (!*known) {
    damaged.fix = fmt::format("if {} is as it was when the run began, have it read again: rm {}; {}",
                              text.source, shell_word(text.kept), texts.resume_command);
    return damaged;
  }
  texts.host.warn(fmt::format("what the run kept of its text is damaged, and {} is read again: {}: {}",
                              text.source, damaged.where, damaged.what));
  return {};
}

}  // namespace

Result<std::optional<std::uint64_t>> digest_of_tokens(host::Disk& disk, const run::RunPaths& paths,
                                                      const std::string& source) {
  using Digest = std::optional<std::uint64_t>;
  const auto named =
      source.empty() ? Result<std::optional<std::string>>(std::nullopt) : named_token_file(disk, source);
  if (!named.ok()) return named.error();
  const std::string path = named->value_or(kept_tokens(paths));
  const auto there = disk.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return Digest();
  const auto found = tokens::TokenFile::read_identity(disk, path);
  if (!found.ok() && found.error().kind == ErrorKind::kBadData) return Digest();
  if (!found.ok()) return found.error();
  const auto begun = has_data_sum(disk, paths);
  if (!begun.ok()) return begun.error();
  if (*begun) {
    const auto data = check_run_data(disk, paths, {.checksum = found->checksum});
    if (!data.ok()) return data.error();
    if (*data != RunData::kSame) return Digest();
  }
  return Digest(found->tokenizer_digest);
}

Error missing_text() {
  return {.kind = ErrorKind::kUsage,
          .where = "data.train",
          .what = "there is nothing to train on",
          .got = "no text",
          .expected = "a text, JSON lines with \"text\", a folder of them, or FILE.tokens",
          .fix = "add data.train=FILE"};
}

Result<Opened> training_text(const RunTexts& texts, const std::string& source) {
  const OneText text{.key = "data.train", .source = source, .kept = kept_tokens(texts.paths)};
  const auto same = [&](const Result<Opened>& file) -> Result<bool> {
    const auto data = check_run_data(texts.host.disk, texts.paths, {.checksum = (*file)->checksum()});
    return data.ok() ? Result<bool>(*data == RunData::kSame) : data.error();
  };
  const auto named = source.empty() ? Result<std::optional<std::string>>(std::nullopt)
                                    : named_token_file(texts.host.disk, source);
  if (!named.ok()) return named.error();
  auto file = *named ? take_named(texts, text.key, **named) : open_kept(texts, text);
  if (file.ok() && *file != nullptr) {
    const auto first = same(file);
    if (!first.ok()) return first.error();
    if (*first) return file;
    file = another_text(texts, *named ? **named : text.kept);
  }
  if (!file.ok()) {
    if (*named || file.error().kind != ErrorKind::kBadData) return file;
    if (auto again = may_import_again(texts, text, file.error()); !again.ok()) return again.error();
  }
  if (source.empty()) return missing_text();
  file = import_into(texts, text);
  if (!file.ok()) return file;
  const auto now = same(file);
  if (!now.ok()) return now.error();
  if (*now) return file;
  // What is there now are tokens of another text, which the next attempt must not take for the run's.
  file->reset();
  static_cast<void>(texts.host.disk.remove_all(text.kept));
  return another_text(texts, source);
}

Result<Opened> test_text(const RunTexts& texts, const std::string& source) {
  if (source.empty()) return Opened();
  const OneText text{.key = "data.test", .source = source, .kept = texts.paths.data() + "/test.tokens"};
  const auto named = named_token_file(texts.host.disk, source);
  if (!named.ok()) return named.error();
  if (*named) return take_named(texts, text.key, **named);
  auto kept = open_kept(texts, text);
  if (kept.ok() && *kept != nullptr) return kept;
  if (!kept.ok() && (kept.error().kind != ErrorKind::kBadData || !can_be_read(texts, source))) return kept;
  return import_into(texts, text);
}

}  // namespace gossamer::commands
