// SPDX-License-Identifier: Apache-2.0
//
// Exports a model's weights as one file that other tools read, most of them in two lines of Python.
//
//   safetensors  the tensors of docs/protocols/model.md that are weights or names;
//                metadata says how to use them
//   torch        a dict for torch.load(FILE, weights_only=True): the same tensors, names as lists of strings
//   word2vec     text, one named vector a line (engines/sparse/model/word2vec_text.h)
//
// Training records that a model keeps for prediction are not weights. They stay in the model directory.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"
#include "engines/sparse/model/model.h"
#include "host/api/disk.h"

namespace gossamer::commands {

enum class ExportFormat { kSafetensors, kTorch, kWord2vec };

// The vectors that word2vec text holds.
enum class VectorsOf { kFeatures, kLabels };

struct ExportRequest {
  std::string path;  // path of the new file; its directory must exist
  ExportFormat format = ExportFormat::kSafetensors;
  VectorsOf vectors = VectorsOf::kFeatures;
  FunctionRef<bool()> stop_requested;  // asked before each write of about a megabyte
};

struct ExportResult {
  // Whether stop_requested ended it. There is no file then, and the rest is 0.
  bool stopped = false;
  std::uint64_t bytes = 0;    // bytes of the file
  std::uint64_t entries = 0;  // tensors; in word2vec text: vectors
  // Vectors that were left out, because another has the same name without blanks.
  std::uint64_t repeated = 0;
};

// Writes `path`.gossamer-export, syncs it and renames it, so that a crash, a full disk or a stop leaves a
// whole file or none. Any other failure removes the temporary file. kUsage when the path exists or the model
// has no names to write. kBadData for names that are no UTF-8.
[[nodiscard]] Result<ExportResult> export_model(host::Disk& disk, const sparse_engine::Model& model,
                                                const ExportRequest& request);

}  // namespace gossamer::commands
