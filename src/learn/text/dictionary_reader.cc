// SPDX-License-Identifier: Apache-2.0
#include "learn/text/dictionary_reader.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "learn/data/read/byte_source.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/text/dictd.h"
#include "learn/text/gcide.h"
#include "learn/text/words.h"

namespace gossamer::text {
namespace {

Error no_text_record() {
  return {.kind = ErrorKind::kBadData,
          .what = "cannot use a record as a dictionary entry",
          .got = "a record without text or without named labels",
          .expected = R"({"text": DEFINITION, "labels": [HEADWORD, ...]})",
          .fix = "mend the line"};
}

}  // namespace

Result<void> DictionaryReader::add(DictionaryEntry entry) {
  std::vector<std::string> names;
  for (const std::string& word : entry.headwords) {
    Result<std::string> name = folded_name(word);
    if (!name.ok()) return name.error();
    if (!name->empty() && std::find(names.begin(), names.end(), *name) == names.end()) names.push_back(*name);
  }
  bool has_word = false;
  WordSplitter splitter;
  Result<void> split = splitter.split(entry.definition, [&has_word](std::string_view) { has_word = true; });
  if (!split.ok()) return split;
  if (names.empty() || !has_word) {
    ++left_out_;
    return {};
  }
  entry.headwords = std::move(names);
  entries_.push_back(std::move(entry));
  return {};
}

Result<void> DictionaryReader::read_dictd_files(const DictionarySources::Dictd& files) {
  Result<std::unique_ptr<data::ByteSource>> index = data::open_bytes(disk_, files.index);
  if (!index.ok()) return index.error();
  Result<std::unique_ptr<data::ByteSource>> text = data::open_bytes(disk_, files.text);
  if (!text.ok()) return text.error();
  const Result<DictdReport> report =
      read_dictd(**index, **text, [this](const DictdEntry& entry) -> Result<void> {
        for (Definition& definition : entry_definitions(entry)) {
          Result<void> added =
              add({.headwords = std::move(definition.headwords), .definition = std::move(definition.text)});
          if (!added.ok()) return added;
        }
        return {};
      });
  return report.ok() ? Result<void>() : report.error();
}

Result<void> DictionaryReader::read_wordnet_files(const std::vector<std::string>& paths) {
  std::vector<Synset> synsets;
  for (const std::string& path : paths) {
    Result<std::unique_ptr<data::ByteSource>> source = data::open_bytes(disk_, path);
    if (!source.ok()) return source.error();
    const Result<std::uint64_t> count = read_wordnet(**source, synsets);
    if (!count.ok()) return count.error();
  }
  std::map<SynsetKey, std::size_t> by_key;
  for (std::size_t i = 0; i < synsets.size(); ++i) by_key.emplace(synsets[i].key, i);
  // The names of the synsets that are broader by up to `levels` steps, the nearest first on each branch.
  const std::function<void(const Synset&, int, std::vector<std::string>&)> add_broader =
      [&](const Synset& synset, int levels, std::vector<std::string>& names) {
        for (const SynsetKey& key : synset.broader) {
          const auto found = by_key.find(key);
          if (found == by_key.end()) continue;
          const Synset& broader = synsets[found->second];
          names.insert(names.end(), broader.lemmas.begin(), broader.lemmas.end());
          if (levels > 1) add_broader(broader, levels - 1, names);
        }
      };
  for (const Synset& synset : synsets) {
    DictionaryEntry entry{.headwords = synset.lemmas,
                          .definition = synset.definition,
                          .examples = synset.examples,
                          .may_test = true};
    add_broader(synset, 2, entry.broader);
    if (Result<void> added = add(std::move(entry)); !added.ok()) return added;
  }
  return {};
}

Result<void> DictionaryReader::read_jsonl_file(const std::string& path) {
  Result<std::unique_ptr<data::ByteSource>> source = data::open_bytes(disk_, path);
  if (!source.ok()) return source.error();
  const auto report = data::read_jsonl(**source, {}, [this](const data::JsonlRecord& record) -> Result<void> {
    if (record.kind != data::JsonlRecord::Kind::kText || record.label_name.empty()) return no_text_record();
    return add({.headwords = {record.label_name.begin(), record.label_name.end()},
                .definition = std::string(record.text)});
  });
  return report.ok() ? Result<void>() : report.error();
}

Result<ReadDictionaries> read_dictionaries(host::Disk& disk, const DictionarySources& sources) {
  if (sources.dictd.empty() && sources.wordnet.empty() && sources.jsonl.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .what = "cannot import a dictionary",
                 .got = "no file",
                 .expected = "dictd files (.index and .dict.dz), WordNet data files, or JSON lines",
                 .fix = "name at least one"};
  }
  DictionaryReader reader(disk);
  for (const DictionarySources::Dictd& files : sources.dictd) {
    if (Result<void> read = reader.read_dictd_files(files); !read.ok()) return read.error();
  }
  if (!sources.wordnet.empty()) {
    if (Result<void> read = reader.read_wordnet_files(sources.wordnet); !read.ok()) return read.error();
  }
  for (const std::string& path : sources.jsonl) {
    if (Result<void> read = reader.read_jsonl_file(path); !read.ok()) return read.error();
  }
  ReadDictionaries read{.entries = reader.take(), .left_out = reader.left_out()};
  if (read.entries.empty()) {
    return Error{.kind = ErrorKind::kBadData,
                 .what = "cannot import a dictionary",
                 .got = "no definition in any file",
                 .expected = "at least one",
                 .fix = "check that these are dictionary files"};
  }
  if (sources.wordnet.empty()) {
    for (DictionaryEntry& entry : read.entries) entry.may_test = true;
  }
  return read;
}

}  // namespace gossamer::text
