// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "learn/tokens/pieces_model.h"

namespace gossamer::tokens {
namespace {

// The character that the library writes for a space.
constexpr std::string_view kWrittenSpace = "\xE2\x96\x81";
// The library leaves out lines with this character, U+2585, when it trains.
constexpr std::string_view kLeftOut = "\xE2\x96\x85";

// Rises with each change of what encode() makes of what the library gives.
constexpr std::uint64_t kEncodingVersion = 1;

void take_string(void* to, ModuleBytes bytes) {
  static_cast<std::string*>(to)->assign(bytes.data, bytes.size);
}

// The text for which a piece stands.
std::string text_of(std::string_view piece) {
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t space = std::min(piece.find(kWrittenSpace, at), piece.size());
    text.append(piece.substr(at, space - at));
    if (space < piece.size()) text.push_back(' ');
    at = space + kWrittenSpace.size();
  }
  return text;
}

// The byte of "<0x41>".
int byte_of(std::string_view piece) {
  int byte = -1;
  if (piece.size() == 6 && piece.starts_with("<0x"))
    std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  return byte;
}

// Lines for the library, in parts between the characters for which it would leave them out.
class LineParts {
 public:
  LineParts(std::span<const std::string> lines, const std::function<bool()>& stop)
      : lines_(lines), stop_(stop) {}

  bool next(ModuleBytes* part) {
    while (rest_.empty()) {
      stopped_ = stopped_ || (stop_ && stop_());
      if (lines_.empty() || stopped_) return false;
      rest_ = lines_.front();
      lines_ = lines_.subspan(1);
    }
    const std::size_t end = std::min(rest_.find(kLeftOut), rest_.size());
    *part = {rest_.data(), end};
    any_ = any_ || end > 0;
    rest_.remove_prefix(std::min(end + kLeftOut.size(), rest_.size()));
    return true;
  }
  [[nodiscard]] bool stopped() const { return stopped_; }
  // Whether a part had a byte.
  [[nodiscard]] bool any() const { return any_; }

 private:
  std::span<const std::string> lines_;
  const std::function<bool()>& stop_;
  std::string_view rest_;  // of the line before
  bool stopped_ = false;
  bool any_ = false;
};

// The least number of pieces, where the library says that there are too few: "... required_chars. 300 vs
// 759."
std::optional<std::uint32_t> least_pieces(std::string_view failure) {
  const std::size_t said = failure.find("smaller than required_chars");
  const std::size_t at = said == std::string_view::npos ? said : failure.find(" vs ", said);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint32_t least = 0;
  const auto read = std::from_chars(failure.data() + at + 4, failure.data() + failure.size(), least);
  return read.ec == std::errc() ? std::optional(least) : std::nullopt;
}

Error training_failed(std::uint32_t vocabulary, bool any_text, std::string failure) {
  Error error{.kind = ErrorKind::kRefused,
              .where = std::string(kSentencePieceName),
              .what = "no tokenizer can be trained on this text",
              .got = any_text ? std::move(failure) : "no character",
              .expected = "a text with characters",
              .fix = "take bytes as tokens"};
  if (const auto least = least_pieces(error.got)) {
    error.kind = ErrorKind::kUsage;
    error.what = "the vocabulary has no room for the bytes and the characters of this text";
    error.got = fmt::format("{}", vocabulary);
    error.expected = fmt::format("at least {}", std::uint64_t{*least} + kTokensBesidePieces);
    error.fix = "raise the vocabulary, or take bytes as tokens";
  }
  return error;
}

}  // namespace

std::uint64_t sentencepiece_digest(std::string_view model) {
  return XXH3_64bits_withSeed(model.data(), model.size(), kEncodingVersion);
}

SentencePieceTokenizer::SentencePieceTokenizer(const SentencePieceModule& module, std::string model,
                                               void* loaded)
    : module_(module),
      model_(std::move(model)),
      loaded_(loaded, Unload{module.unload}),
      digest_(sentencepiece_digest(model_)) {
  read_pieces();
}

Result<std::unique_ptr<SentencePieceTokenizer>> SentencePieceTokenizer::load(
    const SentencePieceModule& module, std::string model, const std::string& where) {
  const auto checked = checked_pieces_model(model, where);
  if (!checked.ok()) return checked.error();
  std::string failure;
  void* const loaded = module.load({checked->data(), checked->size()}, &failure, take_string);
  if (loaded == nullptr) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = where,
                 .what = "SentencePiece does not open this model",
                 .got = failure,
                 .expected = "what SentencePiece writes as NAME.model",
                 .fix = "take another model, or have one trained on the text: sentencepiece"};
  }
  std::unique_ptr<SentencePieceTokenizer> tokenizer(
      new SentencePieceTokenizer(module, std::move(model), loaded));
  if (auto usable = tokenizer->check(where); !usable.ok()) return usable.error();
  return tokenizer;
}

void SentencePieceTokenizer::read_pieces() {
  const int pieces = module_.pieces(loaded_.get());
  bytes_.resize(static_cast<std::size_t>(pieces));
  byte_tokens_.assign(256, static_cast<TokenId>(pieces));
  for (int id = 0; id < pieces; ++id) {
    std::string& bytes = bytes_[static_cast<std::size_t>(id)];
    std::string written;
    switch (module_.piece(loaded_.get(), id, &written, take_string)) {
      case PieceKind::kText: bytes = text_of(written); break;
      case PieceKind::kByte:
        if (const int byte = byte_of(written); byte >= 0) {
          bytes.assign(1, static_cast<char>(byte));
          byte_tokens_[static_cast<std::size_t>(byte)] = static_cast<TokenId>(id);
        }
        break;
      case PieceKind::kOther: break;
    }
  }
}

Result<void> SentencePieceTokenizer::check(const std::string& where) const {
  const auto refused = [&](std::string what, std::string got, std::string expected) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = where,
                 .what = std::move(what),
                 .got = std::move(got),
                 .expected = std::move(expected),
                 .fix = "take another model, or have one trained on the text: sentencepiece"};
  };
  const auto without = std::ranges::find(byte_tokens_, line_end());
  if (without != byte_tokens_.end()) {
    return refused("this model of SentencePiece cannot write every text",
                   fmt::format("no piece for the byte 0x{:02X}", without - byte_tokens_.begin()),
                   "pieces for all 256 bytes (byte_fallback)");
  }
  std::vector<TokenId> tokens;
  // Characters that normal forms change: a tab, a carriage return, a space that does not break, a ligature,
  // and an accent on its own.
  for (const std::string_view text :
       {"a", " a", "a  b ", "   ", "a\tb\rc", "\xC2\xA0", "\xEF\xAC\x81", "e\xCC\x81"}) {
    tokens.clear();
    if (append_words(text, tokens) == 0) continue;
    return refused("this model of SentencePiece does not give every text back",
                   fmt::format("another text for {}", quote(text)), "the text as it is");
  }
  return {};
}

std::vector<int> SentencePieceTokenizer::library_ids(std::string_view text) const {
  std::vector<int> ids;
  const auto take = [](void* to, const int* given, std::size_t count) {
    static_cast<std::vector<int>*>(to)->assign(given, given + count);
  };
  if (!module_.encode(loaded_.get(), {text.data(), text.size()}, &ids, take)) ids.clear();
  return ids;
}

std::string_view SentencePieceTokenizer::bytes_of(int id) const {
  return id >= 0 && static_cast<TokenId>(id) < line_end() ? bytes_[static_cast<TokenId>(id)]
                                                          : std::string_view();
}

std::size_t SentencePieceTokenizer::append_words(std::string_view words, std::vector<TokenId>& out) const {
  const std::vector<int> ids = library_ids(words);
  std::size_t first = 0;
  for (; first < ids.size(); ++first) {
    const std::string_view bytes = bytes_of(ids[first]);
    if (bytes.empty() || !words.starts_with(bytes)) break;
    out.push_back(static_cast<TokenId>(ids[first]));
    words.remove_prefix(bytes.size());
  }
  std::size_t last = ids.size();
  for (; last > first; --last) {
    const std::string_view bytes = bytes_of(ids[last - 1]);
    if (bytes.empty() || !words.ends_with(bytes)) break;
    words.remove_suffix(bytes.size());
  }
  append_bytes(words, out);
  for (; last < ids.size(); ++last) out.push_back(static_cast<TokenId>(ids[last]));
  return words.size();
}

void SentencePieceTokenizer::append_bytes(std::string_view text, std::vector<TokenId>& out) const {
  for (const char c : text) out.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
}

void SentencePieceTokenizer::append_line(std::string_view line, std::vector<TokenId>& out) const {
  for (;;) {
    const std::size_t space = std::min(line.find(kWrittenSpace), line.size());
    if (space > 0) append_words(line.substr(0, space), out);
    if (space == line.size()) return;
    append_bytes(kWrittenSpace, out);
    line.remove_prefix(space + kWrittenSpace.size());
  }
}

void SentencePieceTokenizer::encode(std::string_view piece, std::vector<TokenId>& out) const {
  for (;;) {
    const std::size_t end = std::min(piece.find('\n'), piece.size());
    append_line(piece.substr(0, end), out);
    if (end == piece.size()) return;
    out.push_back(line_end());
    piece.remove_prefix(end + 1);
  }
}

std::string SentencePieceTokenizer::decode(std::span<const TokenId> tokens) const {
  std::string text;
  for (const TokenId token : tokens) {
    CHECK(token < vocabulary(), token);
    if (token == line_end()) {
      text.push_back('\n');
    } else if (token < line_end()) {
      text += bytes_[token];
    }
  }
  return text;
}

Result<std::string> train_sentencepiece(const SentencePieceModule& module, std::span<const std::string> lines,
                                        std::uint32_t vocabulary, const std::function<bool()>& stop) {
  CHECK(vocabulary >= kLeastVocabulary, vocabulary);
  LineParts parts(lines, stop);
  struct Said {
    std::string model;
    std::string failure;
  };
  Said said;
  const SentencePieceTraining training{
      .vocabulary = vocabulary - kTokensBesidePieces,
      .from = &parts,
      .next = [](void* from, ModuleBytes* part) { return static_cast<LineParts*>(from)->next(part); }};
  const bool done = module.train(
      training, &said,
      [](void* to, ModuleBytes bytes) { take_string(&static_cast<Said*>(to)->model, bytes); },
      [](void* to, ModuleBytes bytes) { take_string(&static_cast<Said*>(to)->failure, bytes); });
  if (parts.stopped()) return Error{.where = std::string(kSentencePieceName), .what = "stopped"};
  if (done) return std::move(said.model);
  return training_failed(vocabulary, parts.any(), std::move(said.failure));
}

}  // namespace gossamer::tokens
