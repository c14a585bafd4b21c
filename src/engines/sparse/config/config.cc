// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/config.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "base/nearest_name.h"
#include "engines/sparse/config/negatives_plan.h"
#include "kernels/products.h"
#include "settings/config_value.h"

namespace gossamer::engine {
namespace {

using config_value::kLongestList;
using config_value::read;
using config_value::write;

template <class T>
struct Inner {
  using type = T;
  static constexpr bool takes_auto = false;
};
template <class T>
struct Inner<std::optional<T>> {
  using type = T;
  static constexpr bool takes_auto = true;
};

template <class T>
constexpr KeyType type_of() {
  if constexpr (std::is_same_v<T, bool>) return KeyType::kSwitch;
  if constexpr (std::is_enum_v<T>) return KeyType::kChoice;
  if constexpr (std::is_same_v<T, double>) return KeyType::kNumber;
  if constexpr (std::is_same_v<T, std::string>) return KeyType::kText;
  if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) return KeyType::kList;
  return KeyType::kInteger;
}

// The field that a pair of member pointers names. A lone pointer names a field of TrainConfig itself.
template <auto kSection, auto kMember>
auto& field(auto& config) {
  if constexpr (std::is_same_v<decltype(kMember), std::nullptr_t>) {
    return config.*kSection;
  } else {
    return config.*kSection.*kMember;
  }
}

template <auto kSection, auto kMember = nullptr>
ConfigKey key(std::string_view name, const KeyRules& rules, std::string_view help) {
  using T = std::remove_cvref_t<decltype(field<kSection, kMember>(std::declval<TrainConfig&>()))>;
  return {
      .name = name,
      .help = help,
      .type = type_of<typename Inner<T>::type>(),
      .takes_auto = Inner<T>::takes_auto,
      .rules = rules,
      .get = [](const TrainConfig& c, const KeyRules& r) { return write(field<kSection, kMember>(c), r); },
      .set = [](TrainConfig& c, const KeyRules& r,
                std::string_view text) { return read(text, r, field<kSection, kMember>(c)); }};
}

constexpr double kMaxCount = 4294967295.0;
constexpr double kMaxCopies = 63;
constexpr double kMaxSteps = 9007199254740991.0;  // 2^53 - 1: up to here doubles tell all integers apart

using T = TrainConfig;

void add_data_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::seed>("seed", {.max = kMaxSteps}, "names every random stream of the run"));
  keys.push_back(
      key<&T::data, &DataConfig::train>("data.train", {}, "training records: a file (plain, .gz or .zst)"));
  keys.push_back(key<&T::data, &DataConfig::test>(
      "data.test", {}, "test records; when given, the finished model is measured on them"));
  keys.push_back(key<&T::data, &DataConfig::format>(
      "data.format", {.choices = {"xmc", "jsonl", "sessions", "text"}},
      "how the records are written; auto: told by the content; sessions and plain text need to be said"));
  keys.push_back(key<&T::data, &DataConfig::weighting>(
      "data.weighting", {.choices = {"none", "tfidf", "l2"}},
      "what is done to feature values: nothing, tf-idf and unit length, unit length alone"));
  keys.push_back(key<&T::data, &DataConfig::skip_bad>("data.skip_bad", {.max = kMaxCount},
                                                      "bad records to leave out before giving up"));
}

void add_model_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::model, &ModelConfig::hidden>(
      "model.hidden", {.min = 16, .max = 4096, .multiple_of = 16}, "width of the hidden layer"));
  keys.push_back(key<&T::model, &ModelConfig::dense>(
      "model.dense", {.min = 16, .max = 4096, .multiple_of = 16},
      "widths of further hidden layers between the first and the output"));
  keys.push_back(key<&T::model, &ModelConfig::activation>(
      "model.activation", {.choices = {"relu", "identity", "tanh"}}, "of the hidden layer"));
  keys.push_back(key<&T::model, &ModelConfig::dropout>(
      "model.dropout", {.max = 0.95}, "share of hidden units that a training sample does without"));
  keys.push_back(key<&T::model, &ModelConfig::embedding_init>("model.embedding_init", {.max = 10},
                                                              "standard deviation of new embedding rows"));
  keys.push_back(key<&T::model, &ModelConfig::output_init>("model.output_init", {.max = 10},
                                                           "standard deviation of new output rows"));
}

void add_train_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::train, &TrainingConfig::epochs>("train.epochs", {.min = 0.001, .max = 100'000},
                                                         "passes over the training records"));
  keys.push_back(key<&T::train, &TrainingConfig::steps>(
      "train.steps", {.max = kMaxSteps}, "optimizer updates; 0: as many as train.epochs needs"));
  keys.push_back(
      key<&T::train, &TrainingConfig::batch>("train.batch", {.min = 1, .max = 65536}, "records in a step"));
  keys.push_back(
      key<&T::train, &TrainingConfig::lr>("train.lr", {.min = 1e-9, .max = 10}, "peak learning rate"));
  keys.push_back(key<&T::train, &TrainingConfig::input_dropout>(
      "train.input_dropout", {.max = 0.95}, "share of a record's features that a training step leaves out"));
  keys.push_back(key<&T::train, &TrainingConfig::warmup_steps>(
      "train.warmup_steps", {.max = kMaxCount}, "steps in which the learning rate rises to its peak"));
  keys.push_back(key<&T::train, &TrainingConfig::schedule>(
      "train.schedule", {.choices = {"linear", "cosine", "constant"}},
      "how the learning rate falls to 0 after the warm-up"));
  keys.push_back(key<&T::train, &TrainingConfig::negatives>(
      "train.negatives", {.choices = {"in-batch", "uniform", "frequency", "lsh"}},
      "where wrong labels come from beside the batch itself: nowhere, or train.sampled drawn evenly, by "
      "frequency, or found by hash tables"));
  keys.push_back(key<&T::train, &TrainingConfig::sampled>(
      "train.sampled", {.max = 16'777'216}, "labels drawn or found in a step beside the batch's own"));
  keys.push_back(key<&T::train, &TrainingConfig::frequency_exponent>(
      "train.frequency_exponent", {.max = 2}, "frequency draws a label in proportion to count^this"));
  keys.push_back(key<&T::train, &TrainingConfig::hard_negatives>(
      "train.hard_negatives", {.max = 16'777'216},
      "labels found by hash tables in a step, beside those of train.negatives"));
  keys.push_back(key<&T::train, &TrainingConfig::hard_after>(
      "train.hard_after", {.max = 1}, "share of the steps after which train.hard_negatives begin"));
  keys.push_back(key<&T::train, &TrainingConfig::precision>("train.precision", {.choices = {"f32", "bf16"}},
                                                            "of the products; weights are always f32"));
  keys.push_back(key<&T::loss, &LossConfig::logq>(
      "loss.logq", {.choices = {"all", "exact", "none"}},
      "correction for how often a label is active: every label, unbiased given the sample, or off"));
}

void add_lsh_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::lsh, &HashConfig::family>(
      "lsh.family", {.choices = {"simhash", "winner"}},
      "hash functions: signs of random projections, or winner-take-all (DWTA)"));
  keys.push_back(key<&T::lsh, &HashConfig::functions>("lsh.functions", {.min = 1, .max = 32},
                                                      "hash functions joined to a code (K)"));
  keys.push_back(key<&T::lsh, &HashConfig::tables>("lsh.tables", {.min = 1, .max = 1000}, "hash tables (L)"));
  keys.push_back(key<&T::lsh, &HashConfig::key_bits>("lsh.key_bits", {.min = 1, .max = 16},
                                                     "2^this buckets in a table; longer codes are folded"));
  keys.push_back(key<&T::lsh, &HashConfig::queries>("lsh.queries", {.min = 1, .max = 65536},
                                                    "records of a step that ask the tables"));
  keys.push_back(key<&T::lsh, &HashConfig::select>(
      "lsh.select", {.choices = {"best", "random"}},
      "which labels a record takes: those that most tables support, or tables in random order (vanilla)"));
  keys.push_back(key<&T::lsh, &HashConfig::sets>(
      "lsh.sets", {.choices = {"shared", "own"}},
      "who scores what a record found: all records of the step, or that one alone (SLIDE)"));
  keys.push_back(key<&T::lsh, &HashConfig::bucket>("lsh.bucket", {.max = kMaxCount},
                                                   "rows read of a bucket, the last ones; 0: all"));
  keys.push_back(key<&T::lsh, &HashConfig::tolerance>(
      "lsh.tolerance", {.max = 1}, "rows keep their buckets until they moved by this share of their length"));
  keys.push_back(key<&T::lsh, &HashConfig::update_every>("lsh.update_every", {.min = 1, .max = kMaxSteps},
                                                         "steps between updates of the tables, at first"));
  keys.push_back(key<&T::lsh, &HashConfig::update_growth>(
      "lsh.update_growth", {.max = 10}, "each gap between updates is e^this times the one before"));
}

void add_optimizer_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::optimizer, &OptimizerConfig::beta1>("optimizer.beta1", {.max = 0.9999},
                                                             "decay of Adam's first moment"));
  keys.push_back(key<&T::optimizer, &OptimizerConfig::beta2>("optimizer.beta2", {.max = 0.999999},
                                                             "decay of Adam's second moment"));
  keys.push_back(key<&T::optimizer, &OptimizerConfig::epsilon>("optimizer.epsilon", {.min = 1e-30, .max = 1},
                                                               "keeps Adam's division finite"));
  keys.push_back(key<&T::optimizer, &OptimizerConfig::skipped>(
      "optimizer.skipped", {.choices = {"hold", "decay", "decay-and-move"}},
      "what the moments of a row do in steps that do not touch it"));
  keys.push_back(key<&T::optimizer, &OptimizerConfig::moments>(
      "optimizer.moments", {.choices = {"element", "embedding-block", "block"}},
      "one second moment a weight, or for 16 weights of the embedding, or of both tables (half the memory)"));
}

// The range of a weight of the fusion (fusion.h).
const KeyRules kWeight{.min = -1000, .max = 1000};

void add_predict_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::predict, &PredictConfig::instances>(
      "predict.instances", {}, "keep the training records in the model and let near ones vote"));
  keys.push_back(key<&T::predict, &PredictConfig::candidates>("predict.candidates", {.min = 1, .max = 10'000},
                                                              "labels that the network proposes"));
  keys.push_back(key<&T::predict, &PredictConfig::neighbours>("predict.neighbours", {.min = 1, .max = 10'000},
                                                              "near training records that vote"));
  keys.push_back(key<&T::predict, &PredictConfig::weighting>(
      "predict.weighting", {.choices = {"own", "net"}},
      "records are compared by a weighting of their own, or as the network sees them"));
  keys.push_back(key<&T::predict, &PredictConfig::local_scaling>(
      "predict.local_scaling", {.max = 4},
      "records in crowded places are near everything: (how crowded)^this is taken off them; 0: nothing"));
  keys.push_back(key<&T::predict, &PredictConfig::held_out>(
      "predict.held_out", {.max = 1'000'000},
      "records that training leaves out, to learn the weights of prediction on; 0: none"));
  keys.push_back(key<&T::predict, &PredictConfig::net_weight>("predict.net_weight", kWeight,
                                                              "weight of the network's score"));
  keys.push_back(key<&T::predict, &PredictConfig::centroid_weight>(
      "predict.centroid_weight", kWeight, "weight of the cosine to a label's mean record"));
  keys.push_back(key<&T::predict, &PredictConfig::input_vote_weight>(
      "predict.input_vote_weight", kWeight, "weight of the vote of neighbours by input"));
  keys.push_back(key<&T::predict, &PredictConfig::sharp_vote_weight>(
      "predict.sharp_vote_weight", kWeight, "weight of their vote with the sharper power"));
  keys.push_back(key<&T::predict, &PredictConfig::hidden_vote_weight>(
      "predict.hidden_vote_weight", kWeight, "weight of the vote of neighbours by hidden layer"));
  keys.push_back(key<&T::predict, &PredictConfig::mixed_vote_weight>(
      "predict.mixed_vote_weight", kWeight, "weight of the vote of neighbours by both together; 0: none"));
  keys.push_back(key<&T::predict, &PredictConfig::input_vote_power>(
      "predict.input_vote_power", {.max = 64}, "a neighbour by input votes with cosine^power"));
  keys.push_back(key<&T::predict, &PredictConfig::sharp_vote_power>("predict.sharp_vote_power", {.max = 64},
                                                                    "and with this power in a second vote"));
  keys.push_back(key<&T::predict, &PredictConfig::hidden_vote_power>(
      "predict.hidden_vote_power", {.max = 64}, "a neighbour by hidden layer votes with cosine^power"));
  keys.push_back(key<&T::predict, &PredictConfig::mixed_vote_power>(
      "predict.mixed_vote_power", {.max = 64}, "a neighbour by both votes with mean cosine^power"));
}

void add_text_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::text, &TextConfig::stems>("text.stems", {}, "stems of words are features too"));
  keys.push_back(key<&T::text, &TextConfig::subword_min>(
      "text.subword_min", {.max = 16}, "shortest piece of a word that is a feature; 0: no pieces"));
  keys.push_back(key<&T::text, &TextConfig::subword_max>("text.subword_max", {.max = 16},
                                                         "longest piece of a word that is a feature"));
  keys.push_back(key<&T::text, &TextConfig::min_df>("text.min_df", {.min = 1, .max = kMaxCount},
                                                    "records that must hold a feature for it to be kept"));
  keys.push_back(key<&T::text, &TextConfig::max_features>("text.max_features", {.min = 1, .max = kMaxCount},
                                                          "most frequent features kept"));
  keys.push_back(key<&T::text, &TextConfig::stem_weight>("text.stem_weight", {.max = 100},
                                                         "weight of a stem beside a whole word's 1"));
  keys.push_back(key<&T::text, &TextConfig::subword_weight>("text.subword_weight", {.max = 100},
                                                            "weight of a piece beside a whole word's 1"));
  keys.push_back(key<&T::text, &TextConfig::context_weight>(
      "text.context_weight", {.max = 100}, "weight of a record's \"context\" beside its text's 1"));
}

void add_session_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::sessions, &SessionsConfig::last>("sessions.last", {.min = 1, .max = 10'000},
                                                          "items of a session that are looked at"));
  keys.push_back(key<&T::sessions, &SessionsConfig::decay>("sessions.decay", {.min = 0.01, .max = 1},
                                                           "an item weighs this share of the one after it"));
}

void add_word2vec_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(
      key<&T::word2vec, &Word2vecConfig::mode>("word2vec.mode", {.choices = {"cbow", "skip-gram"}},
                                               "the word from those around it, or the other way round"));
  keys.push_back(key<&T::word2vec, &Word2vecConfig::window>("word2vec.window", {.min = 1, .max = 1000},
                                                            "words on each side that a window may reach"));
  keys.push_back(key<&T::word2vec, &Word2vecConfig::shrink>(
      "word2vec.shrink", {},
      "each window reaches 1 to word2vec.window words, drawn anew; false: always all"));
  keys.push_back(key<&T::word2vec, &Word2vecConfig::sample>(
      "word2vec.sample", {.max = 1}, "share of the text from which a word is thinned out; 0: none is"));
  keys.push_back(key<&T::word2vec, &Word2vecConfig::min_count>(
      "word2vec.min_count", {.min = 1, .max = kMaxCount}, "rarer words are left out of the text"));
  keys.push_back(key<&T::word2vec, &Word2vecConfig::max_words>(
      "word2vec.max_words", {.min = 1, .max = kMaxCount - 1}, "most frequent words kept"));
}

void add_checkpoint_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::checkpoint, &CheckpointConfig::every_steps>("checkpoint.every_steps",
                                                                     {.max = kMaxSteps}, "0: by time alone"));
  keys.push_back(key<&T::checkpoint, &CheckpointConfig::every_minutes>(
      "checkpoint.every_minutes", {.max = 10'080}, "0: by steps alone; a stopped run always writes one"));
  keys.push_back(key<&T::checkpoint, &CheckpointConfig::keep>("checkpoint.keep", {.min = 1, .max = 1000},
                                                              "newest checkpoints kept"));
}

void add_cluster_keys(std::vector<ConfigKey>& keys) {
  keys.push_back(key<&T::cluster, &ClusterConfig::codec>(
      "cluster.codec", {.choices = {"f32", "bf16", "int8"}},
      "how nodes write what they give each other in a step: 4, 2 or a little more than 1 byte a number"));
  keys.push_back(key<&T::cluster, &ClusterConfig::exchange>(
      "cluster.exchange", {.choices = {"shares", "dslide"}},
      "what nodes tell of their scores: two numbers a sample, or all of them (D-SLIDE, to compare with)"));
  keys.push_back(key<&T::cluster, &ClusterConfig::microbatches>(
      "cluster.microbatches", {.min = 1, .max = 16},
      "parts of a step's samples: nodes compute one while they exchange another; trains the same"));
  keys.push_back(
      key<&T::cluster, &ClusterConfig::staleness>("cluster.staleness", {.max = 1},
                                                  "1: nodes have two steps in flight, which hides half of "
                                                  "what they wait for; a step lacks one before it"));
  keys.push_back(key<&T::cluster, &ClusterConfig::snapshot_every>(
      "cluster.snapshot_every", {.min = 1, .max = 1'000'000},
      "steps from one copy of what nodes hold to the next; a lost node's part is replayed from there"));
  keys.push_back(key<&T::cluster, &ClusterConfig::copies>(
      "cluster.copies", {.max = kMaxCopies},
      "other nodes that keep a copy of each part, or all if they are fewer; 0: no node may be lost"));
}

std::vector<ConfigKey> make_keys() {
  std::vector<ConfigKey> keys;
  add_data_keys(keys);
  add_model_keys(keys);
  add_train_keys(keys);
  add_lsh_keys(keys);
  add_optimizer_keys(keys);
  add_predict_keys(keys);
  add_text_keys(keys);
  add_session_keys(keys);
  add_word2vec_keys(keys);
  add_checkpoint_keys(keys);
  add_cluster_keys(keys);
  return keys;
}

std::string join_choices(const std::vector<std::string_view>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

Error usage(std::string_view where, std::string what) {
  return {.kind = ErrorKind::kUsage, .where = std::string(where), .what = std::move(what)};
}

}  // namespace

std::span<const ConfigKey> config_keys() {
  static const std::vector<ConfigKey> keys = make_keys();
  return keys;
}

const ConfigKey* find_key(std::string_view name) {
  for (const ConfigKey& key : config_keys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string accepted_values(const ConfigKey& key) {
  const std::string lead = key.takes_auto ? "auto or " : "";
  switch (key.type) {
    case KeyType::kSwitch: return lead + "true or false";
    case KeyType::kText: return lead + "a text";
    case KeyType::kChoice:
      return key.takes_auto ? "auto, " + join_choices(key.rules.choices) : join_choices(key.rules.choices);
    case KeyType::kNumber: return fmt::format("{}a number {}..{}", lead, key.rules.min, key.rules.max);
    case KeyType::kList:
      return fmt::format("none, or up to {} integers {}..{}, multiples of {}, such as 256,128", kLongestList,
                         key.rules.min, key.rules.max, key.rules.multiple_of);
    case KeyType::kInteger: break;
  }
  std::string text = fmt::format("{}an integer {:.0f}..{:.0f}", lead, key.rules.min, key.rules.max);
  if (key.rules.multiple_of > 1) text += fmt::format(", a multiple of {}", key.rules.multiple_of);
  return text;
}

std::string get_key(const TrainConfig& config, const ConfigKey& key) { return key.get(config, key.rules); }

Result<void> set_key(TrainConfig& config, std::string_view name, std::string_view text,
                     std::string_view where) {
  const ConfigKey* key = find_key(name);
  if (key == nullptr) {
    std::vector<std::string_view> names;
    for (const ConfigKey& known : config_keys()) names.push_back(known.name);
    Error error = usage(where, fmt::format("there is no key '{}'", name));
    error.expected = fmt::format("a key such as '{}'", nearest_name(name, names));
    error.fix = "'gossamer train --keys' lists all of them";
    return error;
  }
  if (!key->set(config, key->rules, text)) {
    Error error = usage(where, fmt::format("cannot set {}", name));
    error.got = fmt::format("'{}'", text);
    error.expected = accepted_values(*key);
    error.fix = fmt::format("{}: {}", name, key->help);
    return error;
  }
  return {};
}

namespace {

Result<void> check_microbatches(const TrainConfig& config) {
  const ClusterConfig& cluster = config.cluster;
  if (cluster.microbatches == 1) return {};
  if (cluster.staleness > 0 || cluster.exchange != ExchangeKind::kShares || finds_negatives(config)) {
    Error error = usage("cluster.microbatches", "samples of a step cannot be exchanged in parts");
    error.got = fmt::format("{} beside cluster.staleness = 1, cluster.exchange = dslide or hash tables",
                            cluster.microbatches);
    error.expected = "cluster.microbatches = 1, or none of these";
    error.fix = "leave out cluster.microbatches";
    return error;
  }
  const std::uint64_t each = kernels::kPanelMultiple;
  if (config.train.batch % (cluster.microbatches * each) != 0) {
    Error error = usage("cluster.microbatches", "samples of a step cannot be cut into equal parts");
    error.got = fmt::format("{} with train.batch = {}", cluster.microbatches, config.train.batch);
    error.expected = fmt::format("train.batch a multiple of {} samples for each", each);
    error.fix = "choose fewer, or another train.batch";
    return error;
  }
  return {};
}

}  // namespace

Result<void> validate(const TrainConfig& config) {
  if (config.text.subword_min > config.text.subword_max) {
    Error error = usage("text.subword_min", "the shortest piece of a word is longer than the longest");
    error.got =
        fmt::format("{} with text.subword_max = {}", config.text.subword_min, config.text.subword_max);
    error.expected = "text.subword_min <= text.subword_max";
    error.fix = "change one of the two";
    return error;
  }
  if (config.optimizer.beta1 * config.optimizer.beta1 >= config.optimizer.beta2) {
    Error error = usage("optimizer.beta1", "Adam diverges with these decays");
    error.got = fmt::format("{} with optimizer.beta2 = {}", config.optimizer.beta1, config.optimizer.beta2);
    error.expected = "optimizer.beta1 squared < optimizer.beta2";
    error.fix = "lower optimizer.beta1 or raise optimizer.beta2";
    return error;
  }
  if (config.data.format == DataFormat::kText && config.predict.instances) {
    Error error = usage("predict.instances", "windows of a text are not kept in the model");
    error.got = "true with data.format = text";
    error.expected = "predict.instances = false";
    error.fix = "set predict.instances=false, or start from the preset word2vec";
    return error;
  }
  if (config.data.format == DataFormat::kText && config.train.input_dropout > 0) {
    Error error = usage("train.input_dropout", "nothing of a window is left out but by word2vec.sample");
    error.got = fmt::format("{} with data.format = text", config.train.input_dropout);
    error.expected = "train.input_dropout = 0";
    error.fix = "leave train.input_dropout out";
    return error;
  }
  if (config.cluster.exchange == ExchangeKind::kDslide && finds_negatives(config) &&
      config.lsh.sets == sparse::HashSets::kShared) {
    Error error = usage("cluster.exchange", "nodes cannot tell how many scores they will have");
    error.got = "dslide with lsh.sets = shared";
    error.expected = "lsh.sets = own, or no labels found by hash tables";
    error.fix = "leave out cluster.exchange, or start from the preset slide";
    return error;
  }
  if (auto checked = check_microbatches(config); !checked.ok()) return checked;
  return check_negatives(config);
}

}  // namespace gossamer::engine
