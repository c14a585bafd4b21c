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

// Chosen on held-out definitions of another split than the demo's; each record has few words and one answer,
// so the network must not rest on any one word, and the nearest definitions deserve more trust than label
// centroids.
constexpr std::string_view kDictionary =
    R"(# A definition in, its headword out: text of a few words, one answer.
[data]
format = "jsonl"

[model]
dropout = 0.2

[train]
batch = 256
epochs = 12
input_dropout = 0.5

[predict]
net_weight = 0.5
centroid_weight = 2
input_vote_weight = 2
mixed_vote_weight = 1
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
