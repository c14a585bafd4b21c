// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "run/progress.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kTokenFileEnd = ".tokens";
constexpr const char* kImportedTokens = "/train.tokens";

void warn_of_bad_text(const run::NodeHost& host, const tokens::TextReport& report) {
  if (report.skipped == 0) return;
  std::string text = fmt::format("left out {}:", run::counted(report.skipped, "bad line or file"));
  for (const Error& example : report.examples) text += "\n  " + example.message();
  if (report.skipped > report.examples.size()) text += "\n  ...";
  host.warn(text);
}

struct TextCounts {
  std::uint64_t tokens = 1;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
};
std::string line_of_text(const TextCounts& counts) {
  const double tokens = std::max<double>(1, static_cast<double>(counts.tokens));
  return fmt::format("{} of {}, {:.2f} bytes a token", run::counted(counts.tokens, "token"),
                     run::counted(counts.documents, "document"), static_cast<double>(counts.bytes) / tokens);
}

}  // namespace

Result<std::optional<std::string>> named_token_file(host::Disk& disk, const std::string& word) {
  using Named = std::optional<std::string>;
  if (word.ends_with(kTokenFileEnd)) return Named(word);
  const auto there = disk.exists(word + kImportedTokens);
  if (!there.ok()) return there.error();
  return *there ? Named(word + kImportedTokens) : Named();
}

Result<tokens::TokenReport> import_text(const run::NodeHost& host, const tokens::Tokenizer& tokenizer,
                                        const TextImport& wanted) {
  run::Progress bar(host.console, host.clock, "reading", host.verbosity);
  const auto progress = [&](const data::ReadProgress& now) -> Result<void> {
    if (wanted.stop && wanted.stop())
      return Error{.kind = ErrorKind::kFailed, .where = "import", .what = "stopped"};
    if (bar.due()) {
      const std::string detail = run::counted(now.records, "document");
      bar.update({.done = now.bytes / 1'000'000, .total = 0, .unit = "MB", .detail = detail});
    }
    return {};
  };
  auto report = tokens::import_tokens(
      host.disk, wanted.sources, tokenizer, wanted.path,
      {.read = {.skip_bad = wanted.skip_bad, .compute = &host.compute, .progress = progress}});
  bar.finish();
  if (report.ok()) warn_of_bad_text(host, report->text);
  return report;
}

std::string text_line(const tokens::TokenFile& file) {
  return line_of_text({.tokens = file.size(), .documents = file.documents(), .bytes = file.text_bytes()});
}

std::string text_line(const tokens::TokenReport& report) {
  const tokens::TextReport& text = report.text;
  std::string line =
      line_of_text({.tokens = report.tokens, .documents = text.documents, .bytes = text.bytes});
  std::vector<std::string> left_out;
  if (text.empty > 0) left_out.push_back(run::counted(text.empty, "empty document"));
  if (text.hidden > 0) left_out.push_back(run::counted(text.hidden, "hidden file"));
  if (text.skipped > 0) left_out.push_back(run::counted(text.skipped, "bad line"));
  if (!left_out.empty()) line += fmt::format("; left out: {}", fmt::join(left_out, ", "));
  return line;
}

Result<std::unique_ptr<tokens::TokenFile>> open_tokens(const run::NodeHost& host, const std::string& path,
                                                       const tokens::Tokenizer& tokenizer) {
  auto file = tokens::TokenFile::open(host.disk, path, host.compute);
  if (!file.ok()) return file;
  const bool same =
      (*file)->tokenizer_digest() == tokenizer.digest() && (*file)->vocabulary() == tokenizer.vocabulary();
  if (same) return file;
  return Error{.kind = ErrorKind::kBadData,
               .where = path,
               .what = "these are the tokens of another tokenizer",
               .got = fmt::format("a vocabulary of {}, digest {:016x}", (*file)->vocabulary(),
                                  (*file)->tokenizer_digest()),
               .expected = fmt::format("'{}': a vocabulary of {}, digest {:016x}", tokenizer.name(),
                                       tokenizer.vocabulary(), tokenizer.digest()),
               .fix = "import the text anew: gossamer data import lm TEXT --out DIR"};
}

}  // namespace gossamer::commands
