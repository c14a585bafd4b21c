// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_memory.h"

#include <fmt/format.h>

#include "base/human_bytes.h"

namespace gossamer::commands {
namespace {

using pipeline::LmConfig;
using pipeline::LmShape;
using pipeline::Precision;

std::uint64_t number_bytes(Precision precision) { return precision == Precision::kF64 ? 8 : 4; }

std::uint64_t training_bytes(const LmConfig& config, std::uint32_t vocabulary) {
  return 4 * number_bytes(config.train.precision) *
         lm_parameter_count(pipeline::shape_of(config, vocabulary));
}

// The most layers with which the run fits; 0: none does.
std::uint32_t layers_that_fit(const LmConfig& config, std::uint32_t vocabulary, std::uint64_t limit) {
  std::uint32_t fits = 0;
  std::uint32_t too_many = pipeline::shape_of(config, vocabulary).layers;
  while (fits + 1 < too_many) {
    LmConfig smaller = config;
    smaller.model.layers = fits + (too_many - fits) / 2;
    (training_bytes(smaller, vocabulary) <= limit ? fits : too_many) = *smaller.model.layers;
  }
  return fits;
}

std::string what_fits(const LmConfig& config, std::uint32_t vocabulary, std::uint64_t limit) {
  LmConfig smaller = config;
  smaller.train.precision = Precision::kF32;
  if (training_bytes(smaller, vocabulary) <= limit) return "train.precision=f32";
  if (const std::uint32_t layers = layers_that_fit(config, vocabulary, limit); layers > 0)
    return fmt::format("model.layers={}", layers);
  smaller.model = {.preset = pipeline::LmPresetName::kTiny};
  if (training_bytes(smaller, vocabulary) <= limit)
    return "model.preset=tiny in f32, without other keys of the model";
  return "none of the presets; give this process more memory";
}

}  // namespace

std::uint64_t lm_parameter_count(const LmShape& shape) {
  return pipeline::lm_parameters(shape, {.first = 0, .last = shape.layers, .layers = shape.layers});
}

Precision precision_of(const pipeline::LmHeader& header) {
  return header.dtype == tensors::DType::kF64 ? Precision::kF64 : Precision::kF32;
}

Result<std::uint64_t> check_training_memory(const run::NodeHost& host, const LmConfig& config,
                                            std::uint32_t vocabulary) {
  const std::uint64_t needed = training_bytes(config, vocabulary);
  const std::uint64_t limit = host.compute.memory_limit_bytes();
  if (needed <= limit) return needed;
  const std::uint64_t parameters = lm_parameter_count(pipeline::shape_of(config, vocabulary));
  return Error{.kind = ErrorKind::kFailed,
               .where = "memory",
               .what = "the run would not fit",
               .got = fmt::format("{} needed for {} parameters with gradients and moments",
                                  human_bytes(needed), run::human_count(parameters)),
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
