// SPDX-License-Identifier: Apache-2.0
//
// What a user asks of a model or of files, without the engine that does it. An engine refuses what it does
// not know (kUsage).
//
// Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/api/endpoint.h"

namespace gossamer::commands {

// Members that have a model in parts.
struct ModelNodes {
  std::size_t nodes = 1;
  // Where they join from other machines. Nothing: they are processes of this machine.
  std::optional<host::Endpoint> join_at = {};
  // Called with the address and a token when members may join at `join_at`.
  std::function<Result<void>(const host::Endpoint& at, const std::string& token)> joined_at = {};
  std::string directory;     // for their files, from the root; made, and gone at the end
  std::string program;       // path of the program's file
  std::string program_name;  // for peers
};

// How a model of texts goes on with a prompt. Nothing: as its engine does.
struct TextWanted {
  std::optional<std::uint64_t> tokens = {};  // to add at most, 1..kMostNewTokens
  std::optional<double> temperature = {};    // 0..kMostTemperature; 0: the best token
  std::optional<std::uint32_t> top_k = {};   // the best of these are drawn from; 0: of all
  std::optional<std::uint64_t> seed = {};    // 0..kMostTextSeed
};
inline constexpr std::uint64_t kMostNewTokens = 1'000'000;
inline constexpr double kMostTemperature = 1000;
inline constexpr std::uint64_t kMostTextSeed = (std::uint64_t{1} << 53) - 1;

// Opens a model for queries.
struct OpenModel {
  std::string directory;  // of a finished run, or its model/
  std::size_t top = 5;    // answers to a query
  bool net_alone = false;
  std::string retrieval = "exact";
  std::optional<ModelNodes> nodes = {};  // nothing: this process has the model
  std::function<bool()> stop = {};       // asked while it waits for nodes; may be empty
  // Labels with less probability are left out of answers; 0..1. Nothing: none is.
  std::optional<double> threshold = {};
  TextWanted text = {};
};

struct MeasureModel {
  OpenModel model;
  std::string data;  // test records
  std::uint64_t skip_bad = 0;
  std::string baseline = {};  // what is measured in place of the model; empty: the model
  // A directory for files that are gone at the end, missing so far. Empty: there is no place for any.
  std::string scratch = {};
};

struct ExportModel {
  std::string directory;
  std::string format;
  std::string out = {};  // the new file; empty: the format's own name in `directory`
  bool labels = false;
  std::function<bool()> stop = {};
};

struct ImportFiles {
  std::string kind;
  std::vector<std::string> sources;
  std::string directory;  // missing or empty
  std::uint64_t skip_bad = 0;
  std::uint32_t held_out = 5000;       // for testing
  std::vector<std::string> keep = {};  // headwords of which nothing is held out
  bool plain = false;
  bool as_is = false;                            // lines of names, whatever other format they look like
  std::string tokenizer = "bytes";               // as data.tokenizer
  std::optional<std::uint32_t> vocabulary = {};  // as data.vocabulary
};

// What a command tells at its end.
struct Report {
  std::string json;      // one object, without a newline
  std::string text;      // the same for people, with newlines
  bool stopped = false;  // by `stop`; the texts are empty then
};

}  // namespace gossamer::commands
