// SPDX-License-Identifier: Apache-2.0
//
// model.json of a language model as plain data (docs/protocols/model.md), before any tensor is read.
//
// Thread rule: plain values, pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "tensors/model_directory.h"
#include "tensors/safetensors.h"

namespace gossamer::pipeline {

inline constexpr std::uint64_t kLmModelFormat = 1;

// The tokenizer whose tokens the model knows, as tokens::Tokenizer names it.
struct LmTokenizer {
  std::string name;
  std::uint64_t digest = 0;
  bool operator==(const LmTokenizer&) const = default;
};

// What model.json tells beside the files.
struct LmAbout {
  LmShape shape;
  LmTokenizer tokenizer;
  std::uint64_t steps = 0;  // that it was trained
  bool operator==(const LmAbout&) const = default;
};

struct LmHeader {
  LmAbout about;
  tensors::DType dtype = tensors::DType::kF32;  // of every tensor: kF32 or kF64
  std::vector<tensors::ShardEntry> shards = {};
};

[[nodiscard]] std::string format_lm_header(const LmAbout& about, tensors::DType dtype,
                                           const tensors::WrittenShards& files);

// `path` is for messages. The error is kBadData naming the field, also for a shape that no model has; and
// kRefused for another format number.
[[nodiscard]] Result<LmHeader> parse_lm_header(const std::string& path, std::string_view text);

// The numbers that a model of this shape has at least: its embedding, its head, and for each layer one matrix
// of attention and two of the feed-forward part. It has at most some ten times as many.
[[nodiscard]] std::uint64_t least_numbers(const LmShape& shape);

}  // namespace gossamer::pipeline
