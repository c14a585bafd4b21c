// SPDX-License-Identifier: Apache-2.0
//
// Opens gossamer_sentencepiece.so, the module of this program that cuts text into pieces of words by
// SentencePiece (program_module.h).
//
// Errors: those of open_program_module(); kRefused for a module that was built for another version of this
// program.
// Thread rule: any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "commands/engine/engine_part.h"
#include "host/api/disk.h"
#include "learn/tokens/sentencepiece/sentencepiece_module.h"
#include "run/node_host.h"

namespace gossamer::commands {

struct SentencePieceLibrary {
  std::string path;
  const tokens::SentencePieceModule* module;  // lives as long as the process
};
// `program`: the path of the program's file, with a "/".
[[nodiscard]] Result<SentencePieceLibrary> open_sentencepiece_library(host::Disk& disk,
                                                                      const std::string& program);

// The module of the program that runs here.
[[nodiscard]] Result<const tokens::SentencePieceModule*> open_pieces(const run::NodeHost& host);
// Whether it is there, for `version` and `doctor`. Opens it.
[[nodiscard]] EnginePart look_at_sentencepiece(host::Disk& disk);

}  // namespace gossamer::commands
