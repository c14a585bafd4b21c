// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/presets.h"

#include <array>

namespace gossamer::sparse_engine {
namespace {

constexpr std::string_view kXmc =
    R"(# Many labels for each bag of features. The recipe is the default of every key.
[train]
batch = 256
epochs = "auto"
)";

// Chosen on 2,500 held-out definitions, half of the demo's. Each record has few words and one answer, so the
// network must not rest on any one word. Large batches bring the wrong answers that it has to tell apart. A
// definition makes two records (data import dictionary), hence twice the neighbours. The weights of
// prediction are given. Queries are not like the records, each of which is there twice, so held-out records
// would mislead. A crowd of definitions is a word that many dictionaries explain alike, which must not be
// scaled down.
constexpr std::string_view kDictionary =
    R"(# A definition in, its headword out: text of a few words, one answer.
[data]
format = "jsonl"

[model]
dropout = 0.2

[train]
batch = 1024
epochs = 8
input_dropout = 0.5

[predict]
neighbours = 200
local_scaling = 0
net_weight = 0.4
centroid_weight = 3
input_vote_weight = 1
sharp_vote_weight = 0
hidden_vote_weight = 4
mixed_vote_weight = 1
)";

// Chosen on the last twentieth of diginetica's training sessions (docs/benchmarks.md). Large batches bring
// the wrong items that a short session has to be told from. A bag has length 1 already. Local scaling gains
// nothing there and would cost half as much again as the training.
constexpr std::string_view kNextItem =
    R"(# Sessions of items in, the next item out.
[data]
format = "sessions"
weighting = "none"

[train]
batch = 1024
epochs = 3

[predict]
local_scaling = 0
)";

// As the paper describes it. If it leaves a choice:
// - update_growth is our lambda, for which it gives no value.
// - beta is that for Delicious-200K, 1,000 labels for each of the 128 records.
// - The length of a run is the program's.
//
// Weights of features are the file's. Here all rows stay in their buckets and the last 128 are read. SLIDE
// throws the others away, which is the same to a reader. Lazy Adam makes up for skipped steps at a row's next
// one, in closed form. SLIDE's program visits every row in every step.
constexpr std::string_view kSlide =
    R"(# SLIDE (Chen et al., MLSys 2020): hash tables choose each record's active labels, nothing is corrected.
# For Amazon-670K the paper has batch = 256 and family = "winner", functions = 8, with 3000 labels a record.
[data]
weighting = "none"

[model]
hidden = 128
dropout = 0
embedding_init = 0.01
output_init = 0.01

[train]
batch = 128
lr = 1e-4
warmup_steps = 0
schedule = "constant"
negatives = "lsh"
sampled = 128000

[lsh]
family = "simhash"
functions = 9
tables = 50
queries = 128
select = "random"
sets = "own"
bucket = 128
tolerance = 0
update_every = 50
update_growth = 0.1

[loss]
logq = "none"

[optimizer]
skipped = "decay-and-move"
moments = "element"

[predict]
instances = false
held_out = 0
)";

constexpr std::string_view kWord2vec =
    R"(# Word vectors from a plain text: a word from the words around it.
[data]
format = "text"
weighting = "none"

[model]
hidden = 128
activation = "identity"
dropout = 0

[train]
batch = 128
lr = 0.005
epochs = 5

[predict]
instances = false
)";

constexpr std::array kPresets = {
    Preset{.name = "xmc",
           .help = "extreme multi-label classification of sparse records (XMLC text or JSONL)",
           .toml = kXmc},
    Preset{.name = "dictionary",
           .help = "a reverse dictionary: from a definition to the word (JSONL)",
           .toml = kDictionary},
    Preset{.name = "next-item",
           .help = "what comes next in a session: lines of item names, the newest last",
           .toml = kNextItem},
    Preset{.name = "slide",
           .help = "SLIDE's algorithm and settings (MLSys 2020), to compare with xmc",
           .toml = kSlide},
    Preset{
        .name = "word2vec", .help = "word vectors from a plain text: CBOW or skip-gram", .toml = kWord2vec},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset* find_preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace gossamer::sparse_engine
