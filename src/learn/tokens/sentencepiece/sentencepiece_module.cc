// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/sentencepiece/sentencepiece_module.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstring>
#include <exception>
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

// The character that the library writes for a space.
constexpr const char* kWrittenSpace = "\xE2\x96\x81";
// A longer line is left out. The library would end the process with a word of more characters.
constexpr const char* kMostLineBytes = "32768";

void say(void* to, TakeBytes take, const std::string& bytes) { take(to, {bytes.data(), bytes.size()}); }
void say(void* to, TakeBytes take, const char* words) { take(to, {words, std::strlen(words)}); }

// The caller's lines, one at a time, and then a space. A model of a text without any would have no piece for
// it. Then the library would make three bytes of each space, those of kWrittenSpace.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const SentencePieceTraining& training) : training_(training) { Next(); }
  [[nodiscard]] bool done() const override { return done_; }
  void Next() override {
    ModuleBytes line{};
    if (!space_ && training_.next(training_.from, &line)) {
      value_.assign(line.data, line.size);
      any_ = any_ || line.size > 0;
      return;
    }
    // The library refuses a text without any line, which a space would hide.
    done_ = space_ || !any_;
    space_ = true;
    value_ = " ";
  }
  [[nodiscard]] const std::string& value() const override { return value_; }
  [[nodiscard]] sentencepiece::util::Status status() const override { return {}; }

 private:
  const SentencePieceTraining& training_;
  std::string value_;
  bool any_ = false;    // whether a line has a byte
  bool space_ = false;  // whether the space was given
  bool done_ = false;
};

// The text stays as it is: nothing is normalised, no space is added or left out, and a character that is rare
// becomes its bytes. One thread takes the lines in their order.
std::unordered_map<std::string, std::string> options(std::uint32_t vocabulary) {
  return {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocabulary)},
      {"hard_vocab_limit", "false"},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9995"},
      {"required_chars", kWrittenSpace},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"max_sentence_length", kMostLineBytes},
      {"shuffle_input_sentence", "false"},
      {"num_threads", "1"},
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"minloglevel", "2"},
  };
}

// No exception passes to the caller. It becomes words where there is a place for them. Elsewhere it ends the
// process, as one of the program's own does.
bool train(const SentencePieceTraining& training, void* to, TakeBytes model, TakeBytes failure) noexcept {
  try {
    Lines lines(training);
    std::string bytes;
    const auto done =
        sentencepiece::SentencePieceTrainer::Train(options(training.vocabulary), &lines, &bytes);
    if (done.ok()) say(to, model, bytes);
    if (!done.ok()) say(to, failure, done.error_message());
    return done.ok();
  } catch (const std::exception& thrown) {
    say(to, failure, thrown.what());
    return false;
  }
}

void* load(ModuleBytes bytes, void* to, TakeBytes failure) noexcept {
  try {
    auto processor = std::make_unique<Processor>();
    const auto loaded = processor->LoadFromSerializedProto({bytes.data, bytes.size});
    if (loaded.ok()) return processor.release();
    say(to, failure, loaded.error_message());
  } catch (const std::exception& thrown) {
    say(to, failure, thrown.what());
  }
  return nullptr;
}

const Processor& processor(const void* model) { return *static_cast<const Processor*>(model); }

void unload(void* model) noexcept { delete static_cast<Processor*>(model); }

int pieces(const void* model) noexcept { return processor(model).GetPieceSize(); }

PieceKind piece(const void* model, int id, void* to, TakeBytes take) noexcept {
  const Processor& all = processor(model);
  say(to, take, all.IdToPiece(id));
  if (all.IsByte(id)) return PieceKind::kByte;
  return all.IsUnknown(id) || all.IsControl(id) || all.IsUnused(id) ? PieceKind::kOther : PieceKind::kText;
}

bool encode(const void* model, ModuleBytes text, void* to, TakeNumbers take) noexcept {
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
