// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/sentencepiece_library.h"

#include <fmt/format.h>

#include "commands/lm/program_module.h"
#include "host/posix/child_process.h"

namespace gossamer::commands {
namespace {

constexpr ProgramModule kPiecesModule = {.part = "sentencepiece",
                                         .file = "gossamer_sentencepiece.so",
                                         .symbol = tokens::kSentencePieceModuleSymbol,
                                         .names = host::ModuleNames::kItsOwn,
                                         .needed = "tokens of words need a module of this program",
                                         .does = "the module, which makes them by SentencePiece",
                                         .missed_by = "data.tokenizer=sentencepiece needs",
                                         .advice = "for tokens of words: make torch"};

}  // namespace

Result<SentencePieceLibrary> open_sentencepiece_library(host::Disk& disk, const std::string& program) {
  const auto opened = open_program_module(disk, program, kPiecesModule);
  if (!opened.ok()) return opened.error();
  const auto* const module = static_cast<const tokens::SentencePieceModule*>(opened->symbol);
  if (module->version != tokens::kSentencePieceModuleVersion)
    return other_module(opened->path, module->version, tokens::kSentencePieceModuleVersion);
  return SentencePieceLibrary{.path = opened->path, .module = module};
}

Result<const tokens::SentencePieceModule*> open_pieces(const run::NodeHost& host) {
  const auto library = open_sentencepiece_library(host.disk, host::own_program());
  if (!library.ok()) return library.error();
  return library->module;
}

EnginePart look_at_sentencepiece(host::Disk& disk) {
  const std::string program = host::own_program();
  const auto library = open_sentencepiece_library(disk, program);
  if (!library.ok()) return part_not_there(disk, program, kPiecesModule, library.error());
  const std::string version = library->module->library_version;
  return part_there(kPiecesModule, version,
                    fmt::format("SentencePiece {} for language models, by {}", version, library->path));
}

}  // namespace gossamer::commands
