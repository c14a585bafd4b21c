// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human_bytes.h"
#include "engines/pipeline/stage/lm_activations.h"

namespace gossamer::commands {
namespace {

using pipeline::Keep;
using pipeline::LmConfig;
using pipeline::LmShape;
using pipeline::Precision;

std::uint64_t number_bytes(Precision precision) { return precision == Precision::kF64 ? 8 : 4; }

// A lone stage has the inputs of all layers again before its backward pass. So Keep::kInput takes no less.
constexpr Keep kLeastKeep = Keep::kLayerInputs;

bool fits(const LmConfig& config, std::uint32_t vocabulary, std::uint64_t limit) {
  return training_bytes(config, vocabulary, kLeastKeep) <= limit;
}

// The largest number below `too_many` for which `fits_with` is true, as it is for all smaller ones; 0: none.
template <class Fits>
std::uint32_t most_that_fit(std::uint32_t too_many, Fits&& fits_with) {
  std::uint32_t most = 0;
  while (most + 1 < too_many) {
    const std::uint32_t middle = most + (too_many - most) / 2;
    (fits_with(middle) ? most : too_many) = middle;
  }
  return most;
}

std::string what_fits(const LmConfig& config, std::uint32_t vocabulary, std::uint64_t limit) {
  LmConfig smaller = config;
  smaller.train.precision = Precision::kF32;
  if (config.train.precision == Precision::kF64 && fits(smaller, vocabulary, limit))
    return "train.precision=f32";
  smaller = config;
  const std::uint32_t windows = most_that_fit(config.train.microbatch, [&](std::uint32_t number) {
    smaller.train.microbatch = number;
    return fits(smaller, vocabulary, limit);
  });
  if (windows > 0) return fmt::format("train.microbatch={}", windows);
  smaller = config;
  const std::uint32_t layers =
      most_that_fit(pipeline::shape_of(config, vocabulary).layers, [&](std::uint32_t number) {
        smaller.model.layers = number;
        return fits(smaller, vocabulary, limit);
      });
  if (layers > 0) return fmt::format("model.layers={}", layers);
  smaller.train.precision = Precision::kF32;
  smaller.train.microbatch = 1;
  smaller.model = {.preset = pipeline::LmPresetName::kTiny};
  if (fits(smaller, vocabulary, limit))
    return "model.preset=tiny in f32 with train.microbatch=1, without other keys of the model";
  return "none of the presets; give this process more memory";
}

}  // namespace

std::uint64_t lm_parameter_count(const LmShape& shape) {
  return pipeline::lm_parameters(shape, {.first = 0, .last = shape.layers, .layers = shape.layers});
}

Precision precision_of(const pipeline::LmHeader& header) {
  return header.dtype == tensors::DType::kF64 ? Precision::kF64 : Precision::kF32;
}

std::uint64_t training_bytes(const LmConfig& config, std::uint32_t vocabulary, Keep keep) {
  const LmShape shape = pipeline::shape_of(config, vocabulary);
  const Precision precision = config.train.precision;
  const std::uint64_t parameter = 4 * number_bytes(precision) + (precision == Precision::kBf16 ? 2 : 0);
  const std::uint64_t microbatch = pipeline::training_peak_bytes(
      shape, precision, std::uint64_t{config.train.microbatch} * shape.context, keep);
  return kProgramBytes + parameter * lm_parameter_count(shape) + microbatch + microbatch / kGapShare;
}

Result<TrainingMemory> check_training_memory(const run::NodeHost& host, const LmConfig& config,
                                             std::uint32_t vocabulary) {
  const std::uint64_t limit = host.compute.memory_limit_bytes();
  for (const Keep keep : {Keep::kAll, kLeastKeep}) {
    const std::uint64_t bytes = training_bytes(config, vocabulary, keep);
    if (bytes <= limit) return TrainingMemory{.bytes = bytes, .keep = keep};
  }
  const LmShape shape = pipeline::shape_of(config, vocabulary);
  return Error{.kind = ErrorKind::kFailed,
               .where = "memory",
               .what = "the run would not fit",
               .got = fmt::format("{} needed for {} parameters with gradients and moments, and microbatches "
                                  "of {} of {} tokens",
                                  human_bytes(training_bytes(config, vocabulary, kLeastKeep)),
                                  run::human_count(lm_parameter_count(shape)),
                                  run::counted(config.train.microbatch, "window"), shape.context),
               .expected = fmt::format("at most {}, what this process may use", human_bytes(limit)),
               .fix = fmt::format("would fit: {}", what_fits(config, vocabulary, limit))};
}

Result<void> check_answering_memory(const run::NodeHost& host, const std::string& directory,
                                    const pipeline::LmHeader& header) {
  const std::uint64_t parameters = lm_parameter_count(header.about.shape);
  const std::uint64_t needed = 2 * number_bytes(precision_of(header)) * parameters;
  const std::uint64_t limit = host.compute.memory_limit_bytes();
  if (needed <= limit) return {};
  return Error{
      .kind = ErrorKind::kFailed,
      .where = directory,
      .what = "the model would not fit in memory",
      .got = fmt::format("{} needed for {} parameters", human_bytes(needed), run::human_count(parameters)),
      .expected = fmt::format("at most {}, what this process may use", human_bytes(limit)),
      .fix = "give this process more memory, or ask a smaller model"};
}

}  // namespace gossamer::commands
