// SPDX-License-Identifier: Apache-2.0
//
// The directory of a trained language model: model.json and all tensors of the whole model in shards, as
// docs/protocols/model.md says. It holds all that is needed to ask the model, and can be moved.
//
//   auto opened = open_lm_model(disk, "runs/a/model");          // reads the shape
//   auto model = make_stage(opened->header.about.shape);        // of the caller: libtorch or a toy
//   auto loaded = load_lm_model(disk, *opened, *model);         // fills the weights
//
// Thread rule: one thread per call, that of the backend; two calls on the same directory at once are not
// allowed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engines/pipeline/model/lm_model_json.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "host/api/disk.h"
#include "learn/tokens/tokenizer.h"
#include "tensors/model_directory.h"

namespace gossamer::pipeline {

struct LmToSave {
  StageBackend& model;              // the whole model
  LmAbout about;                    // its shape is the backend's (checked)
  std::string_view tokenizer = {};  // Tokenizer::model() of the tokenizer that `about` names
  // A shard is closed before it would pass this size. A larger tensor has a shard of its own.
  std::uint64_t max_shard_bytes = tensors::kMaxShardBytes;
};
// Writes `directory` (its parent must exist), in the type of the backend's weights. A crash or a full disk at
// any moment leaves the earlier model, if any, or the new one. Errors: those of the disk; kFailed for a
// weight that is not finite, and then nothing is written.
[[nodiscard]] Result<void> save_lm_model(host::Disk& disk, const std::string& directory,
                                         const LmToSave& save);

struct OpenedLm {
  std::string directory;  // of its files: after a crash NAME.old may be the model NAME
  LmHeader header;
};
// Reads and checks model.json, and the sizes of all files. So a backend of this shape has at most some ten
// times as many weights as the files have room for. Errors: those of parse_lm_header(); kBadData for files
// that are shorter than the shape; those of the disk.
[[nodiscard]] Result<OpenedLm> open_lm_model(host::Disk& disk, const std::string& directory);

// Fills the weights of a backend that was made for the shape (checked), and calls its weights_changed().
// Numbers are rounded where the backend's type is not that of the files. Requires that no task lives. Errors:
// kBadData with the file and the tensor, for a damaged file, a tensor that is missing, there twice, of
// another type or shape, not of this shape, or has a number that is not finite; those of the backend. After
// an error the weights are of no model.
[[nodiscard]] Result<void> load_lm_model(host::Disk& disk, const OpenedLm& opened, StageBackend& model);

// Tokenizer::model() of the model's tokenizer, from its file; empty for a tokenizer that has none. kBadData
// for a file that is gone, or is not the one that the model was saved with.
[[nodiscard]] Result<std::string> read_tokenizer(host::Disk& disk, const OpenedLm& opened);

// Makes a tokenizer of its name() and model(); `where` is for messages. kRefused for a name that it does not
// know.
using LoadTokenizer = std::function<Result<std::unique_ptr<tokens::Tokenizer>>(
    const std::string& name, std::string model, const std::string& where)>;
// The tokenizer of an opened model. kRefused for one that this program does not have; kBadData for one whose
// vocabulary is not the model's; those of read_tokenizer(), of `load` and of the disk. A damaged file does
// not get to `load`.
[[nodiscard]] Result<std::unique_ptr<tokens::Tokenizer>> tokenizer_of(host::Disk& disk,
                                                                      const OpenedLm& opened,
                                                                      const LoadTokenizer& load);

}  // namespace gossamer::pipeline
