// SPDX-License-Identifier: Apache-2.0
#include "commands/records/dictionary_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "learn/data/read/reading.h"
#include "learn/text/words.h"
#include "run/output_directory.h"

namespace gossamer::commands {
namespace {

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// The path without one of the endings, if it has one.
std::optional<std::string> without_ending(const std::string& path,
                                          std::span<const std::string_view> endings) {
  for (const std::string_view ending : endings) {
    if (path.ends_with(ending) && path.size() > ending.size())
      return path.substr(0, path.size() - ending.size());
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 1> kIndex = {".index"};
constexpr std::array<std::string_view, 3> kTextEndings = {".dict", ".dict.dz", ".dict.gz"};
constexpr std::array<std::string_view, 3> kJsonl = {".jsonl", ".jsonl.gz", ".jsonl.zst"};
constexpr std::array<std::string_view, 4> kWordNet = {"data.noun", "data.verb", "data.adj", "data.adv"};

struct Sorter {
  text::DictionarySources sources;
  std::map<std::string, text::DictionarySources::Dictd> dictd;  // by path without ending

  bool take(const std::string& path) {
    if (const auto stem = without_ending(path, kIndex)) {
      dictd[*stem].index = path;
    } else if (const auto text_stem = without_ending(path, kTextEndings)) {
      dictd[*text_stem].text = path;
    } else if (without_ending(path, kJsonl)) {
      sources.jsonl.push_back(path);
    } else if (std::ranges::find(kWordNet, file_name(path)) != kWordNet.end()) {
      sources.wordnet.push_back(path);
    } else {
      return false;
    }
    return true;
  }
};

Error wrong(const std::string& path, std::string what) {
  return {.kind = ErrorKind::kUsage,
          .where = path,
          .what = std::move(what),
          .got = fmt::format("'{}'", file_name(path)),
          .expected =
              "NAME.index with NAME.dict[.dz], data.noun|verb|adj|adv of WordNet, *.jsonl, or a directory of "
              "them",
          .fix = "give the files by these names"};
}

// Small dictionaries have fewer definitions than are held out when nobody says how many.
std::string describe_held_out(const text::DictionaryReport& report) {
  return fmt::format("{} of {} definitions are held out, and only {} train; --test {} holds out a tenth",
                     run::human_count(report.test), run::human_count(report.definitions),
                     run::human_count(report.train), report.definitions / 10);
}

}  // namespace

Result<text::DictionarySources> find_dictionaries(host::Disk& disk, const std::vector<std::string>& paths) {
  Sorter sorter;
  for (const std::string& path : paths) {
    if (sorter.take(path)) continue;
    auto there = disk.exists(path);
    if (!there.ok()) return there.error();
    auto names = disk.list(path);
    if (*there && !names.ok()) return wrong(path, "not a part of a dictionary");
    if (!names.ok()) return names.error();
    bool any = false;
    for (const std::string& name : *names) any = sorter.take(path + "/" + name) || any;
    if (!any) return wrong(path, "no part of a dictionary in this directory");
  }
  for (const auto& [stem, pair] : sorter.dictd) {
    if (pair.index.empty()) return wrong(pair.text, "a dictionary's text without its index");
    if (pair.text.empty()) return wrong(pair.index, "a dictionary's index without its text");
    sorter.sources.dictd.push_back(pair);
  }
  return std::move(sorter.sources);
}

Result<text::DictionaryReport> import_dictionary_files(const run::NodeHost& host,
                                                       const DictionaryImportRequest& request) {
  auto sources = find_dictionaries(host.disk, request.sources);
  if (!sources.ok()) return sources.error();
  auto out = run::OutputDirectory::open(host.disk, request.directory);
  if (!out.ok()) return out.error();
  std::vector<std::string> keep;
  for (const std::string& word : request.keep) {
    auto folded = text::folded_name(word);
    if (!folded.ok()) return folded.error();
    keep.push_back(std::move(*folded));
  }
  host.say("reading dictionaries");
  auto report = text::import_dictionary(
      host.disk, {.sources = std::move(*sources),
                  .directory = request.directory,
                  .split = {.seed = request.seed, .test = request.test, .keep = std::move(keep)},
                  .context = request.context});
  if (!report.ok()) return report.error();
  if (auto kept = (*out).keep(); !kept.ok()) return kept.error();
  if (!report->keep_unknown.empty())
    host.warn(fmt::format("no definition has the headwords {}, which --keep names",
                          data::quoted_list(report->keep_unknown)));
  if (report->test > report->train) host.warn(describe_held_out(*report));
  return report;
}

}  // namespace gossamer::commands
