// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/token_windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace gossamer::tokens {
namespace {

Error too_short(const TokenFile& file, std::uint32_t context, std::uint64_t needed) {
  return Error{.kind = ErrorKind::kBadData,
               .where = file.name(),
               .what = fmt::format("the text is too short for a context of {} tokens", context),
               .got = fmt::format("{} tokens", file.size()),
               .expected = fmt::format("at least {} tokens", needed),
               .fix = "take a longer text, or a smaller context"};
}

// Fills both spans, of one length, from the tokens that begin at `from`.
void read_window(const TokenFile& file, std::uint64_t from, std::span<TokenId> inputs,
                 std::span<TokenId> targets) {
  file.copy(from, inputs);
  // All targets but the last are inputs too; copying them from there reads the file once.
  std::copy(inputs.begin() + 1, inputs.end(), targets.begin());
  file.copy(from + inputs.size(), targets.last(1));
}

}  // namespace

Result<TokenWindows> TokenWindows::cut(const TokenFile& file, WindowOptions options) {
  CHECK(options.context > 0);
  const std::uint64_t needed = std::uint64_t{options.context} + 1;
  if (file.size() < needed) return too_short(file, options.context, needed);
  return TokenWindows(file, options, (file.size() - 1) / options.context);
}

std::uint64_t TokenWindows::left_out() const { return (file_->size() - 1) % context_; }

void TokenWindows::read(SampleId id, std::span<TokenId> inputs, std::span<TokenId> targets) const {
  CHECK(inputs.size() == context_ && targets.size() == context_, inputs.size(), targets.size(), context_);
  read_window(*file_, window(id) * context_, inputs, targets);
}

Result<EvalWindows> EvalWindows::cut(const TokenFile& file, std::uint32_t context) {
  CHECK(context > 0);
  constexpr std::uint64_t kNeeded = 2;
  if (file.size() < kNeeded) return too_short(file, context, kNeeded);
  return EvalWindows(file, context);
}

std::uint64_t EvalWindows::windows() const { return (targets() - 1) / context_ + 1; }

std::size_t EvalWindows::read(std::uint64_t i, std::span<TokenId> inputs, std::span<TokenId> targets) const {
  CHECK(i < windows(), i, windows());
  CHECK(inputs.size() >= context_ && targets.size() >= context_, inputs.size(), targets.size(), context_);
  const std::uint64_t from = i * context_;
  const std::size_t length = std::min<std::uint64_t>(context_, this->targets() - from);
  read_window(*file_, from, inputs.first(length), targets.first(length));
  return length;
}

}  // namespace gossamer::tokens
