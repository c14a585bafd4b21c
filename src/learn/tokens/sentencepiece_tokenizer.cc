// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "learn/tokens/pieces_model.h"

namespace gossamer::tokens {
namespace {

// By which the library writes a space.
constexpr std::string_view kWrittenSpace = "\xE2\x96\x81";
// The library leaves out lines with this character, U+2585, when it trains.
constexpr std::string_view kLeftOut = "\xE2\x96\x85";

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

}  // namespace

std::uint64_t sentencepiece_digest(std::string_view model) { return XXH3_64bits(model.data(), model.size()); }

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
    if (append_exact(text, tokens)) continue;
    return refused("this model of SentencePiece does not give every text back",
                   fmt::format("another text for {}", quote(text)), "the text as it is");
  }
  return {};
}

bool SentencePieceTokenizer::append_exact(std::string_view text, std::vector<TokenId>& out) const {
  struct Taken {
    const SentencePieceTokenizer& self;
    std::string_view rest;  // of the text, behind the tokens so far
    std::vector<TokenId>& out;
    bool exact = true;
  };
  const std::size_t before = out.size();
  Taken taken{.self = *this, .rest = text, .out = out};
  const auto take = [](void* to, const int* ids, std::size_t count) {
    Taken& all = *static_cast<Taken*>(to);
    for (const int id : std::span(ids, count)) {
      const auto token = static_cast<TokenId>(id);
      all.exact = all.exact && token < all.self.line_end() && !all.self.bytes_[token].empty() &&
                  all.rest.starts_with(all.self.bytes_[token]);
      if (!all.exact) return;
      all.rest.remove_prefix(all.self.bytes_[token].size());
      all.out.push_back(token);
    }
  };
  const bool done = module_.encode(loaded_.get(), {text.data(), text.size()}, &taken, take);
  if (done && taken.exact && taken.rest.empty()) return true;
  out.resize(before);
  return false;
}

void SentencePieceTokenizer::append_bytes(std::string_view text, std::vector<TokenId>& out) const {
  for (const char c : text) out.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
}

void SentencePieceTokenizer::append_line(std::string_view line, std::vector<TokenId>& out) const {
  if (line.empty() || append_exact(line, out)) return;
  // Most often the reason is a written space in the text, and the words around it are as all others.
  for (;;) {
    const std::size_t space = std::min(line.find(kWrittenSpace), line.size());
    const std::string_view words = line.substr(0, space);
    if (!words.empty() && !append_exact(words, out)) append_bytes(words, out);
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
                                        std::uint32_t vocabulary) {
  CHECK(vocabulary >= kLeastSentencePieces, vocabulary);
  struct Parts {
    std::span<const std::string> lines;
    std::string_view rest;  // of the line before
    bool next(ModuleBytes* part) {
      while (rest.empty()) {
        if (lines.empty()) return false;
        rest = lines.front();
        lines = lines.subspan(1);
      }
      const std::size_t end = std::min(rest.find(kLeftOut), rest.size());
      *part = {rest.data(), end};
      rest.remove_prefix(std::min(end + kLeftOut.size(), rest.size()));
      return true;
    }
  };
  struct Said {
    std::string model;
    std::string failure;
  };
  Parts parts{.lines = lines, .rest = {}};
  Said said;
  const SentencePieceTraining training{
      .vocabulary = vocabulary - kTokensBesidePieces,
      .from = &parts,
      .next = [](void* from, ModuleBytes* part) { return static_cast<Parts*>(from)->next(part); }};
  const bool done = module.train(
      training, &said,
      [](void* to, ModuleBytes bytes) { take_string(&static_cast<Said*>(to)->model, bytes); },
      [](void* to, ModuleBytes bytes) { take_string(&static_cast<Said*>(to)->failure, bytes); });
  if (done) return std::move(said.model);
  return Error{.kind = ErrorKind::kRefused,
               .where = std::string(kSentencePieceName),
               .what = "SentencePiece cannot be trained on this text",
               .got = std::move(said.failure),
               .expected = "a text with characters, and a vocabulary that has room for them",
               .fix = "raise the vocabulary, or take bytes as tokens"};
}

}  // namespace gossamer::tokens
