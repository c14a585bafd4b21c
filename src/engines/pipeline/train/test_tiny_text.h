// SPDX-License-Identifier: Apache-2.0
//
// A short text as a token file, and a toy model of it. Only tests include it. Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engines/pipeline/stage/toy_stage.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/tokens/token_file.h"
#include "learn/tokens/token_file_writer.h"
#include "learn/tokens/token_windows.h"

namespace gossamer::pipeline {

struct TinyText {
  static constexpr ToyShape kShape{.vocabulary = 7, .context = 6, .width = 8, .hidden = 12, .layers = 2};

  // Tokens that follow a rule, so that a model can learn them.
  static std::unique_ptr<tokens::TokenFile> file(std::uint32_t size) {
    std::vector<tokens::TokenId> text(size);
    for (std::uint32_t i = 0; i < size; ++i) text[i] = (i * i + i / 3) % kShape.vocabulary;
    return file(text);
  }
  static std::unique_ptr<tokens::TokenFile> file(const std::vector<tokens::TokenId>& text) {
    host::SimDisk disk;
    auto writer = tokens::TokenFileWriter::create(disk, "text.tokens", {.vocabulary = kShape.vocabulary});
    EXPECT_TRUE((*writer)->add(text, text.size()).ok());
    EXPECT_TRUE((*writer)->finish().ok());
    host::SimCompute compute({.workers = 1});
    return *tokens::TokenFile::open(disk, "text.tokens", compute);
  }
  static std::unique_ptr<StageBackend> model() {
    return make_toy_stage(kShape, {.first = 0, .last = kShape.layers, .layers = kShape.layers}, 17);
  }
};

}  // namespace gossamer::pipeline
