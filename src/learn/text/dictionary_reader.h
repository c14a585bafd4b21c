// SPDX-License-Identifier: Apache-2.0
//
// Collects the entries of all dictionaries; rules in dictionary.h. Private to learn/text.
// Owner and thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/text/dictionary.h"
#include "learn/text/wordnet.h"

namespace gossamer::text {

class DictionaryReader {
 public:
  explicit DictionaryReader(host::Disk& disk) : disk_(disk) {}

  [[nodiscard]] Result<void> read_dictd_files(const DictionarySources::Dictd& files);
  // All data files together: hypernyms may lie in another one.
  [[nodiscard]] Result<void> read_wordnet_files(const std::vector<std::string>& paths);
  [[nodiscard]] Result<void> read_jsonl_file(const std::string& path);

  [[nodiscard]] std::vector<DictionaryEntry> take() { return std::move(entries_); }
  // Definitions without a headword or without a word of text.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  // Folds the headwords; keeps the entry if a headword and a word of text are left.
  [[nodiscard]] Result<void> add(DictionaryEntry entry);

  host::Disk& disk_;
  std::vector<DictionaryEntry> entries_;
  std::uint64_t left_out_ = 0;
};

}  // namespace gossamer::text
