// SPDX-License-Identifier: Apache-2.0
//
// A module in place of gossamer_sentencepiece.so, for tests: it knows a few pieces and takes the longest that
// fits. model() of a word does what the word says: "good", "without-bytes", "adds-a-space" before each text,
// "drops-spaces" at the end, "lies" about the letter x, "refuses" texts with an x. It opens no other model.
// Training gives the model of the first line, where that is "good" or "lies"; else it fails. trained() is
// what it got.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "learn/tokens/sentencepiece/sentencepiece_module.h"
#include "learn/tokens/test_pieces_model.h"

namespace gossamer::tokens::test_pieces {

inline const std::vector<std::string> kTexts = {"\xE2\x96\x81",
                                                "\xE2\x96\x81\xE2\x96\x81",
                                                "a",
                                                "b",
                                                ("\xE2\x96\x81"
                                                 "a"),
                                                "ab",
                                                "bb",
                                                "\xC3\xBC",
                                                "x"};  // fmt: skip
inline constexpr int kFirstByte = 1;
inline constexpr int kFirstText = 257;

struct Trained {
  std::uint32_t vocabulary = 0;
  std::vector<std::string> lines;
};
inline Trained& trained() {
  static Trained last;
  return last;
}

// Its bytes are a right model of SentencePiece; the word is the name of its normal form.
inline std::string model(std::string_view word) {
  std::vector<TestPiece> all = byte_pieces();
  for (const std::string& text : kTexts) all.push_back({.piece = text});
  return pieces_model({.pieces = std::move(all), .name = fmt::format("<{}>", word)});
}

inline bool train(const SentencePieceTraining& training, void* to, TakeBytes model, TakeBytes failure) {
  std::vector<std::string> lines;
  for (ModuleBytes line{}; training.next(training.from, &line);) lines.emplace_back(line.data, line.size);
  const std::string word = lines.empty() ? std::string() : lines.front();
  const bool good = word == "good" || word == "lies";
  trained() = {.vocabulary = training.vocabulary, .lines = std::move(lines)};
  const std::string said = good ? test_pieces::model(word) : "too few characters";
  (good ? model : failure)(to, {said.data(), said.size()});
  return good;
}

inline void* load(ModuleBytes bytes, void* to, TakeBytes failure) {
  const std::string_view model(bytes.data, bytes.size);
  for (const char* known : {"good", "without-bytes", "adds-a-space", "drops-spaces", "lies", "refuses"})
    if (model.find(fmt::format("<{}>", known)) != std::string_view::npos) return new std::string(known);
  const std::string_view said = "cannot parse";
  failure(to, {said.data(), said.size()});
  return nullptr;
}
inline const std::string& kind(const void* model) { return *static_cast<const std::string*>(model); }
inline void unload(void* model) { delete static_cast<std::string*>(model); }

inline int pieces(const void*) { return kFirstText + static_cast<int>(kTexts.size()); }

inline PieceKind piece(const void* model, int id, void* to, TakeBytes take) {
  const bool byte = id >= kFirstByte && id < kFirstText;
  std::string written = "<unk>";
  if (byte) written = fmt::format("<0x{:02X}>", id - kFirstByte);
  if (id >= kFirstText) written = kTexts[static_cast<std::size_t>(id - kFirstText)];
  take(to, {written.data(), written.size()});
  if (byte) return kind(model) == "without-bytes" && id == 200 ? PieceKind::kOther : PieceKind::kByte;
  return id < kFirstByte ? PieceKind::kOther : PieceKind::kText;
}

// The longest piece with which a text begins, or the piece of its first byte.
inline int longest(std::string_view text, std::size_t& size) {
  int best = kFirstByte + static_cast<unsigned char>(text.front());
  size = 0;
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    if (!text.starts_with(kTexts[i]) || kTexts[i].size() <= size) continue;
    size = kTexts[i].size();
    best = kFirstText + static_cast<int>(i);
  }
  size = std::max<std::size_t>(size, 1);
  return best;
}

// How often encode() was called.
inline int& asked() {
  static int calls = 0;
  return calls;
}

inline bool encode(const void* model, ModuleBytes given, void* to, TakeNumbers take) {
  ++asked();
  std::string text(given.data, given.size);
  if (kind(model) == "refuses" && text.find('x') != std::string::npos) return false;
  if (kind(model) == "drops-spaces") text.erase(text.find_last_not_of(' ') + 1);
  if (kind(model) == "adds-a-space") text.insert(0, " ");
  std::string written;
  for (const char c : text) written += c == ' ' ? kTexts.front() : std::string(1, c);
  std::vector<int> ids;
  std::size_t size = 0;
  for (std::string_view rest = written; !rest.empty(); rest.remove_prefix(size)) {
    const int id = longest(rest, size);
    ids.push_back(kind(model) == "lies" && rest.front() == 'x' ? 1'000'000 : id);
  }
  take(to, ids.data(), ids.size());
  return true;
}

inline constexpr SentencePieceModule kModule = {.version = kSentencePieceModuleVersion,
                                                .library_version = "0",
                                                .train = train,
                                                .load = load,
                                                .unload = unload,
                                                .pieces = pieces,
                                                .piece = piece,
                                                .encode = encode};

}  // namespace gossamer::tokens::test_pieces
