// SPDX-License-Identifier: Apache-2.0
//
// SentencePieceModule: what the program finds in the shared library gossamer_sentencepiece.so. The library
// behind it shows an old protobuf to everybody. Linked with our own it ends the process. So it stands in a
// module, which looks for names in its own libraries first (host/posix/module.h). All that passes through
// here is of C, because both sides have their own copies of what they include. No exception passes through.
//
// Thread rule: train() and load() on any thread; a model is immutable, and its functions are called on any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gossamer::tokens {

// Rises with each change of this file: a module that was built with another one must not be called.
inline constexpr std::uint32_t kSentencePieceModuleVersion = 1;
inline constexpr const char* kSentencePieceModuleSymbol = "gossamer_sentencepiece_module";

// Bytes of the side that gives them, valid during the call.
struct ModuleBytes {
  const char* data;
  std::size_t size;
};
// Takes bytes; `to` is what was given beside the function.
using TakeBytes = void (*)(void* to, ModuleBytes bytes);
using TakeNumbers = void (*)(void* to, const int* numbers, std::size_t count);

enum class PieceKind : int {
  kText,   // its bytes stand for themselves, U+2581 for a space
  kByte,   // "<0x41>": one byte
  kOther,  // stands for no text: the unknown one, a control symbol
};

struct SentencePieceTraining {
  std::uint32_t vocabulary;  // most pieces, the 256 bytes and the unknown one included
  void* from;
  // False behind the last line; none has a "\n". Lines of more than 32,768 bytes are left out.
  bool (*next)(void* from, ModuleBytes* line);
};

struct SentencePieceModule {
  std::uint32_t version;        // kSentencePieceModuleVersion of the module
  const char* library_version;  // of SentencePiece, "0.1.97"

  // Gives a trained model's bytes. False: `failure` got words instead.
  bool (*train)(const SentencePieceTraining& training, void* to, TakeBytes model, TakeBytes failure);

  // A model from its bytes, for unload(). Null: `failure` got words.
  void* (*load)(ModuleBytes bytes, void* to, TakeBytes failure);
  void (*unload)(void* model);
  // The number of pieces; ids are below.
  int (*pieces)(const void* model);
  // Gives the bytes of a piece as the library writes them.
  PieceKind (*piece)(const void* model, int id, void* to, TakeBytes take);
  // Gives the ids of a text without a line end. False: the library did not take it.
  bool (*encode)(const void* model, ModuleBytes text, void* to, TakeNumbers take);
};

}  // namespace gossamer::tokens
