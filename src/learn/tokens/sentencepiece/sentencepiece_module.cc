// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/sentencepiece/sentencepiece_module.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using gossamer::tokens::ModuleBytes;
using gossamer::tokens::PieceKind;
using gossamer::tokens::SentencePieceTraining;
using gossamer::tokens::TakeBytes;
using gossamer::tokens::TakeNumbers;
using Processor = sentencepiece::SentencePieceProcessor;

void say(void* to, TakeBytes take, const std::string& bytes) { take(to, {bytes.data(), bytes.size()}); }

// The caller's lines, one at a time.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const SentencePieceTraining& training) : training_(training) { Next(); }
  bool done() const override { return done_; }
  void Next() override {
    ModuleBytes line{};
    done_ = !training_.next(training_.from, &line);
    if (done_) {
      value_.clear();
    } else {
      value_.assign(line.data, line.size);
    }
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const SentencePieceTraining& training_;
  std::string value_;
  bool done_ = false;
};

// The text stays as it is: nothing is normalised, no space is added or left out, and a character that is rare
// becomes its bytes. Equal lines give an equal model.
std::unordered_map<std::string, std::string> options(std::uint32_t vocabulary) {
  return {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocabulary)},
      {"hard_vocab_limit", "false"},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9995"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"max_sentence_length", "1000000"},
      {"shuffle_input_sentence", "false"},
      {"num_threads", "1"},
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"minloglevel", "2"},
  };
}

bool train(const SentencePieceTraining& training, void* to, TakeBytes model, TakeBytes failure) {
  Lines lines(training);
  std::string bytes;
  const auto done = sentencepiece::SentencePieceTrainer::Train(options(training.vocabulary), &lines, &bytes);
  if (!done.ok()) {
    say(to, failure, done.error_message());
    return false;
  }
  say(to, model, bytes);
  return true;
}

void* load(ModuleBytes bytes, void* to, TakeBytes failure) {
  auto processor = std::make_unique<Processor>();
  const auto loaded = processor->LoadFromSerializedProto({bytes.data, bytes.size});
  if (loaded.ok()) return processor.release();
  say(to, failure, loaded.error_message());
  return nullptr;
}

const Processor& processor(const void* model) { return *static_cast<const Processor*>(model); }

void unload(void* model) { delete static_cast<Processor*>(model); }

int pieces(const void* model) { return processor(model).GetPieceSize(); }

PieceKind piece(const void* model, int id, void* to, TakeBytes take) {
  const Processor& all = processor(model);
  say(to, take, all.IdToPiece(id));
  if (all.IsByte(id)) return PieceKind::kByte;
  return all.IsUnknown(id) || all.IsControl(id) || all.IsUnused(id) ? PieceKind::kOther : PieceKind::kText;
}

bool encode(const void* model, ModuleBytes text, void* to, TakeNumbers take) {
  std::vector<int> ids;
  if (!processor(model).Encode({text.data, text.size}, &ids).ok()) return false;
  take(to, ids.data(), ids.size());
  return true;
}

}  // namespace

extern "C" {
__attribute__((
    visibility("default"))) extern const gossamer::tokens::SentencePieceModule gossamer_sentencepiece_module;
const gossamer::tokens::SentencePieceModule gossamer_sentencepiece_module = {
    .version = gossamer::tokens::kSentencePieceModuleVersion,
    .library_version = GOSSAMER_SENTENCEPIECE,
    .train = train,
    .load = load,
    .unload = unload,
    .pieces = pieces,
    .piece = piece,
    .encode = encode,
};
}
