// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/config.h"

#include <fmt/format.h>

#include <utility>

#include "engines/sparse/config/negatives_plan.h"

namespace gossamer::sparse_engine {
namespace {

using settings::key;
using settings::KeyRules;
using Rows = std::vector<settings::KeyRow<TrainConfig>>;

constexpr double kMaxCount = 4294967295.0;
constexpr double kMaxCopies = 63;
constexpr double kMaxSteps = 9007199254740991.0;  // 2^53 - 1: up to here doubles tell all integers apart

using T = TrainConfig;

Rows data_keys() {
  return {
      key<&T::seed>("seed", {.max = kMaxSteps}, "names every random stream of the run"),
      key<&T::data, &DataConfig::train>("data.train", {.kept_in = "cache"},
                                        "training records: a file (plain, .gz or .zst)"),
      key<&T::data, &DataConfig::test>("data.test", {.kept_in = ""},
                                       "test records; when given, the finished model is measured on them"),
      key<&T::data, &DataConfig::format>(
          "data.format", {.choices = {data::kRecordFormatWords.begin(), data::kRecordFormatWords.end()}},
          "how the records are written; auto: told by the content; sessions and plain text need to be said"),
      key<&T::data, &DataConfig::weighting>(
          "data.weighting", {.choices = {"none", "tfidf", "l2"}},
          "what is done to feature values: nothing, tf-idf and unit length, unit length alone"),
      key<&T::data, &DataConfig::skip_bad>("data.skip_bad", {.max = kMaxCount},
                                           "bad records to leave out before giving up")};
}

Rows model_keys() {
  return {
      key<&T::model, &ModelConfig::hidden>("model.hidden", {.min = 16, .max = 4096, .multiple_of = 16},
                                           "width of the hidden layer"),
      key<&T::model, &ModelConfig::dense>("model.dense", {.min = 16, .max = 4096, .multiple_of = 16},
                                          "widths of further hidden layers between the first and the output"),
      key<&T::model, &ModelConfig::activation>("model.activation", {.choices = {"relu", "identity", "tanh"}},
                                               "of the hidden layer"),
      key<&T::model, &ModelConfig::dropout>("model.dropout", {.max = 0.95},
                                            "share of hidden units that a training sample does without"),
      key<&T::model, &ModelConfig::embedding_init>("model.embedding_init", {.max = 10},
                                                   "standard deviation of new embedding rows"),
      key<&T::model, &ModelConfig::output_init>("model.output_init", {.max = 10},
                                                "standard deviation of new output rows")};
}

Rows training_keys() {
  return {
      key<&T::train, &TrainingConfig::epochs>("train.epochs", {.min = 0.001, .max = 100'000},
                                              "passes over the training records"),
      key<&T::train, &TrainingConfig::steps>("train.steps", {.max = kMaxSteps},
                                             "optimizer updates; 0: as many as train.epochs needs"),
      key<&T::train, &TrainingConfig::batch>("train.batch", {.min = 1, .max = 65536}, "records in a step"),
      key<&T::train, &TrainingConfig::lr>("train.lr", {.min = 1e-9, .max = 10}, "peak learning rate"),
      key<&T::train, &TrainingConfig::input_dropout>(
          "train.input_dropout", {.max = 0.95},
          "share of a record's features that a training step leaves out"),
      key<&T::train, &TrainingConfig::warmup_steps>("train.warmup_steps", {.max = kMaxCount},
                                                    "steps in which the learning rate rises to its peak"),
      key<&T::train, &TrainingConfig::schedule>("train.schedule",
                                                {.choices = {"linear", "cosine", "constant"}},
                                                "how the learning rate falls to 0 after the warm-up"),
      key<&T::train, &TrainingConfig::negatives>(
          "train.negatives", {.choices = {"in-batch", "uniform", "frequency", "lsh"}},
          "where wrong labels come from beside the batch itself: nowhere, or train.sampled drawn evenly, by "
          "frequency, or found by hash tables"),
      key<&T::train, &TrainingConfig::sampled>("train.sampled", {.max = 16'777'216},
                                               "labels drawn or found in a step beside the batch's own"),
      key<&T::train, &TrainingConfig::frequency_exponent>(
          "train.frequency_exponent", {.max = 2}, "frequency draws a label in proportion to count^this"),
      key<&T::train, &TrainingConfig::hard_negatives>(
          "train.hard_negatives", {.max = 16'777'216},
          "labels found by hash tables in a step, beside those of train.negatives"),
      key<&T::train, &TrainingConfig::hard_after>(
          "train.hard_after", {.max = 1}, "share of the steps after which train.hard_negatives begin"),
      key<&T::train, &TrainingConfig::precision>("train.precision", {.choices = {"f32", "bf16"}},
                                                 "of the products; weights are always f32"),
      key<&T::loss, &LossConfig::logq>(
          "loss.logq", {.choices = {"all", "exact", "none"}},
          "correction for how often a label is active: every label; all but a record's own, unbiased where a "
          "batch is much smaller than the data; or off")};
}

Rows lsh_keys() {
  return {
      key<&T::lsh, &HashConfig::family>(
          "lsh.family", {.choices = {"simhash", "winner"}},
          "hash functions: signs of random projections, or winner-take-all (DWTA)"),
      key<&T::lsh, &HashConfig::functions>("lsh.functions", {.min = 1, .max = 32},
                                           "hash functions joined to a code (K)"),
      key<&T::lsh, &HashConfig::tables>("lsh.tables", {.min = 1, .max = 1000}, "hash tables (L)"),
      key<&T::lsh, &HashConfig::key_bits>("lsh.key_bits", {.min = 1, .max = 16},
                                          "2^this buckets in a table; longer codes are folded"),
      key<&T::lsh, &HashConfig::queries>("lsh.queries", {.min = 1, .max = 65536},
                                         "records of a step that ask the tables"),
      key<&T::lsh, &HashConfig::select>(
          "lsh.select", {.choices = {"best", "random"}},
          "which labels a record takes: those that most tables support, or tables in random order (vanilla)"),
      key<&T::lsh, &HashConfig::sets>(
          "lsh.sets", {.choices = {"shared", "own"}},
          "who scores what a record found: all records of the step, or that one alone (SLIDE)"),
      key<&T::lsh, &HashConfig::bucket>("lsh.bucket", {.max = kMaxCount},
                                        "rows read of a bucket, the last ones; 0: all"),
      key<&T::lsh, &HashConfig::tolerance>(
          "lsh.tolerance", {.max = 1},
          "rows keep their buckets until they moved by this share of their length"),
      key<&T::lsh, &HashConfig::update_every>("lsh.update_every", {.min = 1, .max = kMaxSteps},
                                              "steps between updates of the tables, at first"),
      key<&T::lsh, &HashConfig::update_growth>("lsh.update_growth", {.max = 10},
                                               "each gap between updates is e^this times the one before")};
}

Rows optimizer_keys() {
  return {key<&T::optimizer, &OptimizerConfig::beta1>("optimizer.beta1", {.max = 0.9999},
                                                      "decay of Adam's first moment"),
          key<&T::optimizer, &OptimizerConfig::beta2>("optimizer.beta2", {.max = 0.999999},
                                                      "decay of Adam's second moment"),
          key<&T::optimizer, &OptimizerConfig::epsilon>("optimizer.epsilon", {.min = 1e-30, .max = 1},
                                                        "keeps Adam's division finite"),
          key<&T::optimizer, &OptimizerConfig::skipped>(
              "optimizer.skipped", {.choices = {"hold", "decay", "decay-and-move"}},
              "what the moments of a row do in steps that do not touch it"),
          key<&T::optimizer, &OptimizerConfig::moments>(
              "optimizer.moments", {.choices = {"element", "embedding-block", "block"}},
              "one second moment a weight, or for 16 weights of the embedding, or of both tables (half the "
              "memory)")};
}

// The range of a weight of the fusion (fusion.h).
const KeyRules kWeight{.min = -1000, .max = 1000};

Rows predict_keys() {
  return {
      key<&T::predict, &PredictConfig::instances>(
          "predict.instances", {}, "keep the training records in the model and let near ones vote"),
      key<&T::predict, &PredictConfig::candidates>("predict.candidates", {.min = 1, .max = 10'000},
                                                   "labels that the network proposes"),
      key<&T::predict, &PredictConfig::neighbours>("predict.neighbours", {.min = 1, .max = 10'000},
                                                   "near training records that vote"),
      key<&T::predict, &PredictConfig::weighting>(
          "predict.weighting", {.choices = {"own", "net"}},
          "records are compared by a weighting of their own, or as the network sees them"),
      key<&T::predict, &PredictConfig::local_scaling>(
          "predict.local_scaling", {.max = 4},
          "records in crowded places are near everything: (how crowded)^this is taken off them; 0: nothing"),
      key<&T::predict, &PredictConfig::held_out>("predict.held_out", {.max = 1'000'000},
                                                 "records that training leaves out, to learn on them the "
                                                 "weights of prediction and how likely answers are "
                                                 "right; 0: none"),
      key<&T::predict, &PredictConfig::net_weight>("predict.net_weight", kWeight,
                                                   "weight of the network's score"),
      key<&T::predict, &PredictConfig::centroid_weight>("predict.centroid_weight", kWeight,
                                                        "weight of the cosine to a label's mean record"),
      key<&T::predict, &PredictConfig::input_vote_weight>("predict.input_vote_weight", kWeight,
                                                          "weight of the vote of neighbours by input"),
      key<&T::predict, &PredictConfig::sharp_vote_weight>("predict.sharp_vote_weight", kWeight,
                                                          "weight of their vote with the sharper power"),
      key<&T::predict, &PredictConfig::hidden_vote_weight>(
          "predict.hidden_vote_weight", kWeight, "weight of the vote of neighbours by hidden layer"),
      key<&T::predict, &PredictConfig::mixed_vote_weight>(
          "predict.mixed_vote_weight", kWeight, "weight of the vote of neighbours by both together; 0: none"),
      key<&T::predict, &PredictConfig::input_vote_power>("predict.input_vote_power", {.max = 64},
                                                         "a neighbour by input votes with cosine^power"),
      key<&T::predict, &PredictConfig::sharp_vote_power>("predict.sharp_vote_power", {.max = 64},
                                                         "and with this power in a second vote"),
      key<&T::predict, &PredictConfig::hidden_vote_power>(
          "predict.hidden_vote_power", {.max = 64}, "a neighbour by hidden layer votes with cosine^power"),
      key<&T::predict, &PredictConfig::mixed_vote_power>("predict.mixed_vote_power", {.max = 64},
                                                         "a neighbour by both votes with mean cosine^power")};
}

Rows text_keys() {
  return {key<&T::text, &TextConfig::stems>("text.stems", {}, "stems of words are features too"),
          key<&T::text, &TextConfig::subword_min>("text.subword_min", {.max = 16},
                                                  "shortest piece of a word that is a feature; 0: no pieces"),
          key<&T::text, &TextConfig::subword_max>("text.subword_max", {.max = 16},
                                                  "longest piece of a word that is a feature"),
          key<&T::text, &TextConfig::min_df>("text.min_df", {.min = 1, .max = kMaxCount},
                                             "records that must hold a feature for it to be kept"),
          key<&T::text, &TextConfig::max_features>("text.max_features", {.min = 1, .max = kMaxCount},
                                                   "most frequent features kept"),
          key<&T::text, &TextConfig::stem_weight>("text.stem_weight", {.max = 100},
                                                  "weight of a stem beside a whole word's 1"),
          key<&T::text, &TextConfig::subword_weight>("text.subword_weight", {.max = 100},
                                                     "weight of a piece beside a whole word's 1"),
          key<&T::text, &TextConfig::context_weight>("text.context_weight", {.max = 100},
                                                     "weight of a record's \"context\" beside its text's 1")};
}

Rows session_keys() {
  return {key<&T::sessions, &SessionsConfig::last>("sessions.last", {.min = 1, .max = 10'000},
                                                   "items of a session that are looked at"),
          key<&T::sessions, &SessionsConfig::decay>("sessions.decay", {.min = 0.01, .max = 1},
                                                    "an item weighs this share of the one after it")};
}

Rows word2vec_keys() {
  return {
      key<&T::word2vec, &Word2vecConfig::mode>("word2vec.mode", {.choices = {"cbow", "skip-gram"}},
                                               "the word from those around it, or the other way round"),
      key<&T::word2vec, &Word2vecConfig::window>("word2vec.window", {.min = 1, .max = 1000},
                                                 "words on each side that a window may reach"),
      key<&T::word2vec, &Word2vecConfig::shrink>(
          "word2vec.shrink", {},
          "each window reaches 1 to word2vec.window words, drawn anew; false: always all"),
      key<&T::word2vec, &Word2vecConfig::sample>(
          "word2vec.sample", {.max = 1}, "share of the text from which a word is thinned out; 0: none is"),
      key<&T::word2vec, &Word2vecConfig::min_count>("word2vec.min_count", {.min = 1, .max = kMaxCount},
                                                    "rarer words are left out of the text"),
      key<&T::word2vec, &Word2vecConfig::max_words>("word2vec.max_words", {.min = 1, .max = kMaxCount - 1},
                                                    "most frequent words kept")};
}

Rows checkpoint_keys() {
  return {
      key<&T::checkpoint, &CheckpointConfig::every_steps>("checkpoint.every_steps", {.max = kMaxSteps},
                                                          "0: by time alone"),
      key<&T::checkpoint, &CheckpointConfig::every_minutes>(
          "checkpoint.every_minutes", {.max = 10'080}, "0: by steps alone; a stopped run always writes one"),
      key<&T::checkpoint, &CheckpointConfig::keep>("checkpoint.keep", {.min = 1, .max = 1000},
                                                   "newest checkpoints kept")};
}

Rows cluster_keys() {
  return {
      key<&T::cluster, &ClusterConfig::codec>(
          "cluster.codec", {.choices = {"f32", "bf16", "int8"}},
          "how nodes write what they give each other in a step: 4, 2 or a little more than 1 byte a number"),
      key<&T::cluster, &ClusterConfig::exchange>(
          "cluster.exchange", {.choices = {"shares", "dslide"}},
          "what nodes tell of their scores: two numbers a sample, or all of them (D-SLIDE, to compare with)"),
      key<&T::cluster, &ClusterConfig::staleness>("cluster.staleness", {.max = 1},
                                                  "1: nodes have two steps in flight, which hides half of "
                                                  "what they wait for; a step lacks one before it"),
      key<&T::cluster, &ClusterConfig::snapshot_every>(
          "cluster.snapshot_every", {.min = 1, .max = 1'000'000},
          "steps from one copy of what nodes hold to the next; a lost node's part is replayed from there"),
      key<&T::cluster, &ClusterConfig::copies>(
          "cluster.copies", {.max = kMaxCopies},
          "other nodes that keep a copy of each part, or all if they are fewer; 0: no node may be lost")};
}

Rows all_keys() {
  return settings::join_rows({data_keys(), model_keys(), training_keys(), lsh_keys(), optimizer_keys(),
                              predict_keys(), text_keys(), session_keys(), word2vec_keys(), checkpoint_keys(),
                              cluster_keys()});
}

Error usage(std::string_view where, std::string what) {
  return {.kind = ErrorKind::kUsage, .where = std::string(where), .what = std::move(what)};
}

// Keys of older run directories.
std::vector<settings::RemovedKey> removed_keys() {
  return {{.name = "cluster.microbatches",
           .value = "1",
           .why = "parts of a step trained the same, and took at most 2 % off its time"}};
}

}  // namespace

const settings::KeyTable<TrainConfig>& train_keys() {
  static const settings::KeyTable<TrainConfig> table({.listed_by = "gossamer train --keys"}, all_keys(),
                                                     removed_keys());
  return table;
}

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
  if (config.data.format == data::RecordFormat::kText && config.predict.instances) {
    Error error = usage("predict.instances", "windows of a text are not kept in the model");
    error.got = "true with data.format = text";
    error.expected = "predict.instances = false";
    error.fix = "set predict.instances=false, or start from the preset word2vec";
    return error;
  }
  if (config.data.format == data::RecordFormat::kText && config.predict.held_out.value_or(0) > 0) {
    Error error = usage("predict.held_out", "windows of a text are not held out");
    error.got = fmt::format("{} with data.format = text", *config.predict.held_out);
    error.expected = "predict.held_out = 0";
    error.fix = "leave predict.held_out out";
    return error;
  }
  if (config.data.format == data::RecordFormat::kText && config.train.input_dropout > 0) {
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
  return check_negatives(config);
}

}  // namespace gossamer::sparse_engine
