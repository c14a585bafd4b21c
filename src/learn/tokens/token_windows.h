// SPDX-License-Identifier: Apache-2.0
//
// Windows of a token file, what a language model is trained and measured on. A window of C inputs has C
// targets: target i is the token behind input i. With N tokens in the file there are N - 1 targets.
//
// TokenWindows, for training: window w holds the tokens [w*C, w*C + C], which are C + 1. So neighbours share
// one token, and no target is in two windows. The sampling plan (learn/data/sampling_plan.h) says which
// window a sample id stands for. The last (N - 1) mod C targets are in no window.
//
// EvalWindows, for measuring: the same windows in their order, and a shorter last one for the rest. So each
// target is measured exactly once.
//
// Errors: kBadData with `where` = the file, for one that is too short to have a window.
// Owner: the TokenFile outlives its windows. Thread rule: immutable, any thread. Reading allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "learn/data/sampling_plan.h"
#include "learn/tokens/token_file.h"

namespace gossamer::tokens {

struct WindowOptions {
  std::uint32_t context = 0;  // C, the inputs of a window; at least 1
  std::uint64_t seed = 0;     // of the order of windows
};

class TokenWindows {
 public:
  // Needs at least C + 1 tokens. Requires a context of at least 1, and at most 2^40 windows (both checked).
  [[nodiscard]] static Result<TokenWindows> cut(const TokenFile& file, WindowOptions options);

  [[nodiscard]] std::uint32_t context() const { return context_; }
  // floor((N - 1) / C), at least 1.
  [[nodiscard]] std::uint64_t windows() const { return plan_.records(); }
  // The targets at the end of the file that are in no window, less than C.
  [[nodiscard]] std::uint64_t left_out() const;

  // The window, below windows(), that a sample id stands for. Each pass of windows() ids has every window
  // once, in an order of its own.
  [[nodiscard]] std::uint64_t window(SampleId id) const { return plan_.record(id).value; }
  // Fills both with the window of a sample id. Requires room for C tokens in each, exactly (checked).
  void read(SampleId id, std::span<TokenId> inputs, std::span<TokenId> targets) const;

 private:
  TokenWindows(const TokenFile& file, WindowOptions options, std::uint64_t windows)
      : file_(&file), context_(options.context), plan_(options.seed, windows) {}

  const TokenFile* file_;
  std::uint32_t context_;
  data::SamplingPlan plan_;
};

class EvalWindows {
 public:
  // Needs at least two tokens. Requires a context of at least 1 (checked).
  [[nodiscard]] static Result<EvalWindows> cut(const TokenFile& file, std::uint32_t context);

  [[nodiscard]] std::uint32_t context() const { return context_; }
  // ceil((N - 1) / C), at least 1.
  [[nodiscard]] std::uint64_t windows() const;
  // The targets of all windows together, N - 1.
  [[nodiscard]] std::uint64_t targets() const { return file_->size() - 1; }
  // Fills the front of both with window i, below windows(); returns its length. This is C, or for the last
  // window from 1 to C. Requires room for C tokens in each (checked).
  [[nodiscard]] std::size_t read(std::uint64_t i, std::span<TokenId> inputs,
                                 std::span<TokenId> targets) const;

 private:
  EvalWindows(const TokenFile& file, std::uint32_t context) : file_(&file), context_(context) {}

  const TokenFile* file_;
  std::uint32_t context_;
};

}  // namespace gossamer::tokens
