// SPDX-License-Identifier: Apache-2.0
//
// data import dictionary finds out, by name, which of the user's files are which part of a dictionary. It
// turns them into training and test records (learn/text/dictionary.h).
//
//   NAME.index + NAME.dict[.dz|.gz]            dictd
//   data.noun, data.verb, data.adj, data.adv   WordNet
//   *.jsonl[.gz|.zst]                          {"text": definition, "labels": [headwords]}
//   a directory                                all such files in it
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/text/dictionary.h"
#include "run/node_host.h"

namespace gossamer::commands {

// kUsage names a path that is none of the above, an index without text, or text without an index.
[[nodiscard]] Result<text::DictionarySources> find_dictionaries(host::Disk& disk,
                                                                const std::vector<std::string>& paths);

struct DictionaryImportRequest {
  std::vector<std::string> sources;
  std::string directory;  // missing or empty
  std::uint64_t seed = 1;
  std::uint32_t test = 5000;  // definitions that are held out
  // Headwords, in any letter case, of which no definition is held out.
  std::vector<std::string> keep = {};
  bool context = true;  // see text::DictionaryImport
};
// On an error the directory is as before.
[[nodiscard]] Result<text::DictionaryReport> import_dictionary_files(const run::NodeHost& host,
                                                                     const DictionaryImportRequest& request);

}  // namespace gossamer::commands
