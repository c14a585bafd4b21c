// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/presets.h"

#include <array>

namespace gossamer::engine {
namespace {

constexpr std::string_view kXmc =
    R"(# Many labels for each bag of features. The recipe is the default of every key.
[train]
batch = 256
epochs = "auto"
)";

constexpr std::string_view kDictionary =
    R"(# A definition in, its headword out: text of a few words, one answer.
[data]
format = "jsonl"

[train]
batch = 256
epochs = "auto"
)";

constexpr std::array kPresets = {
    Preset{.name = "xmc",
           .help = "extreme multi-label classification of sparse records (XMLC text or JSONL)",
           .toml = kXmc},
    Preset{.name = "dictionary",
           .help = "a reverse dictionary: from a definition to the word (JSONL)",
           .toml = kDictionary},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset* find_preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace gossamer::engine
