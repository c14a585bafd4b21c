// SPDX-License-Identifier: Apache-2.0
#include "commands/lm_fleet/lm_led_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/human_bytes.h"
#include "commands/lm/lm_material.h"
#include "commands/lm_fleet/lm_member.h"
#include "commands/run/sectioned_training.h"
#include "engines/pipeline/config/lm_config.h"
#include "engines/pipeline/fleet/pipeline_workload.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "exact/floating_modes.h"
#include "exact/step_factors.h"
#include "net/link/channels.h"

namespace gossamer::commands {
namespace {

constexpr std::uint64_t kMessageRoom = 4096;  // of a message, beside its payload

// The floating-point operations of a layer, of embedding and head, in a ratio. A layer multiplies with its
// matrices and attends to its context, as often as it is applied. The embedding is a lookup.
std::vector<double> work_of_layers(const pipeline::LmShape& shape) {
  std::uint64_t matrices = 0;  // of a layer
  for (const pipeline::LmTensor& tensor : pipeline::lm_tensors(shape, {.layers = shape.layers}))
    matrices += tensor.layer == 0 ? tensor.size() : 0;
  const double attention = 2.0 * shape.context * shape.width;
  std::vector<double> work(shape.layers, (static_cast<double>(matrices) + attention) * shape.applied);
  work.back() += static_cast<double>(shape.vocabulary) * shape.width;  // the head is a matrix
  return work;
}

// A member sends its boundary in one message. A step that is done again is sent without a codec.
Result<void> check_boundary(const pipeline::LmConfig& config) {
  const pipeline::LmShape shape = pipeline::shape_of(config, 1);
  const std::uint64_t number = config.train.precision == pipeline::Precision::kF64 ? 8 : 4;
  const std::uint64_t window =
      std::uint64_t{shape.context} * (shape.width * number + 2 * sizeof(std::uint32_t));
  const std::uint64_t most = (net::kMostBoundaryBytes - kMessageRoom) / window;
  if (config.train.microbatch <= most || shape.layers == 1) return {};
  return Error{.kind = ErrorKind::kUsage,
               .where = "train.microbatch",
               .what = "what a microbatch is between two stages is too large for a message",
               .got = fmt::format("{}, with {} a window", config.train.microbatch, human_bytes(window)),
               .expected = most > 0 ? fmt::format("at most {}", most) : "a smaller model.context",
               .fix = most > 0 ? fmt::format("train.microbatch={}", most) : "lower model.context"};
}

// Each stage has a layer and a member at least.
Result<void> check_stages(const pipeline::LmConfig& config, std::size_t members) {
  const std::size_t most = std::min<std::size_t>(members, pipeline::shape_of(config, 1).layers);
  if (!config.pipeline.stages || *config.pipeline.stages <= most) return {};
  return Error{.kind = ErrorKind::kUsage,
               .where = "pipeline.stages",
               .what = "a stage has at least one layer and one node",
               .got = fmt::format("{} stages of {} layers, with {} nodes", *config.pipeline.stages,
                                  pipeline::shape_of(config, 1).layers, members),
               .expected = fmt::format("at most {}", most)};
}

Error members_elsewhere() {
  return {.kind = ErrorKind::kUsage,
          .where = "lm",
          .what = "members from other machines cannot train a language model yet",
          .got = "a coordinator",
          .expected = "processes of this machine",
          .fix = "gossamer train lm data.train=FILE --nodes N --out DIR"};
}

class LmLedTraining final : public SectionedTraining {
 public:
  LmLedTraining(const TrainingPlace& place, const LeadOptions& lead, const LmModules& modules)
      : SectionedTraining(place, "lm", lead),
        members_(lead.own ? lead.own->nodes : 0),
        modules_(modules),
        material_(place, modules) {}

  [[nodiscard]] settings::Values config() const override {
    return pipeline::lm_keys().values(material_.config());
  }
  [[nodiscard]] TrainingFacts facts() const override { return material_.facts(); }
  [[nodiscard]] double learning_rate(StepNumber step) const override {
    const exact::FloatingModes modes;
    return exact::learning_rate(pipeline::trainer_options(material_.config()).schedule, step.value);
  }

  Result<void> save() override {
    if (model_ == nullptr) {
      if (auto made = make_model(); !made.ok()) return made;
    }
    return material_.save_model(*model_, material_.config().train.steps);
  }
  Result<void> check_saved() const override { return material_.check_saved(); }
  Result<Measurement> measure() override {
    return material_.has_test_text() ? material_.measure(model_) : Measurement();
  }

 private:
  // Members say where libtorch is missing, but only once they have been started: so it is opened here first.
  Result<void> load() override {
    if (members_ == 0) return members_elsewhere();
    if (auto good = material_.check(); !good.ok()) return good;
    if (auto good = check_boundary(material_.config()); !good.ok()) return good;
    if (auto good = check_stages(material_.config(), members_); !good.ok()) return good;
    auto make_stage = modules_.stages(host());
    if (!make_stage.ok()) return make_stage.error();
    make_stage_ = *std::move(make_stage);
    if (auto made = material_.make_tokenizer(); !made.ok()) return made;
    if (auto read = material_.read_texts(); !read.ok()) return read;
    return material_.cut();
  }

  [[nodiscard]] std::vector<pipeline::LmTensor> tensors() const {
    const pipeline::LmShape shape = material_.shape();
    return pipeline::lm_tensors(shape, {.first = 0, .last = shape.layers, .layers = shape.layers});
  }

  [[nodiscard]] Sections sections() const override {
    const pipeline::LmConfig& config = material_.config();
    Sections sections{.steps = config.train.steps,
                      .data = config.data.train,
                      .fingerprint = material_.run_fingerprint(),
                      .checkpoints = config.checkpoint.keep};
    const std::uint64_t each = config.train.precision == pipeline::Precision::kF64 ? 8 : 4;
    for (const pipeline::LmTensor& tensor : tensors()) {
      for (const char* const part : {"", ":first", ":second"})
        sections.all.push_back({tensor.name + part, each * tensor.size()});
    }
    return sections;
  }
  // A stage has several holders, and no thing stands for it.
  [[nodiscard]] std::optional<std::uint64_t> thing_of(const std::string&) const override {
    return std::nullopt;
  }
  Result<void> supply(node::Supply& supply) const override {
    return node::add_file(host().disk, supply, std::string(kLmTokens), material_.text().name());
  }
  [[nodiscard]] Led workload(StepNumber start) const override {
    const pipeline::LmConfig& config = material_.config();
    const std::uint64_t microbatches =
        (config.train.batch + config.train.microbatch - 1) / config.train.microbatch;
    const bool exact =
        config.train.precision == pipeline::Precision::kF64 ||
        (config.pipeline.codec == net::Codec::kF32 && config.pipeline.sums == pipeline::LmSums::kF32);
    return {.workload = std::make_unique<pipeline::PipelineWorkload>(
                pipeline::PipelineWorkload::Options{.work = work_of_layers(material_.shape()),
                                                    .stages = config.pipeline.stages,
                                                    .microbatches = microbatches,
                                                    .tokens = config.train.batch * material_.shape().context,
                                                    .start = start,
                                                    .exact = exact,
                                                    .skips_bad = config.train.skip_bad}),
            .tracks = pipeline::PipelineWorkload::tracks(),
            .configuration = {}};
  }

  // The model of which the members have delivered the weights.
  Result<void> make_model() {
    auto model = material_.make_model(make_stage_);
    if (!model.ok()) return model.error();
    for (const pipeline::StageTensor& tensor : (*model)->tensors()) {
      const auto bytes = result(tensor.name);
      if (!bytes.ok()) return bytes.error();
      const auto there = std::visit([](auto all) { return std::as_writable_bytes(all); }, tensor.weights);
      CHECK(there.size() == bytes->size(), tensor.name);
      std::memcpy(there.data(), bytes->data(), there.size());
    }
    if (auto changed = (*model)->weights_changed(); !changed.ok()) return changed;
    model_ = *std::move(model);
    return {};
  }

  const std::size_t members_;  // own ones; 0: they come from anywhere
  const LmModules modules_;
  LmMaterial material_;
  MakeStage make_stage_;
  std::unique_ptr<pipeline::StageBackend> model_;  // trained
};

}  // namespace

std::unique_ptr<Training> lm_led_training(const TrainingPlace& place, const LeadOptions& lead,
                                          const LmModules& modules) {
  return std::make_unique<LmLedTraining>(place, lead, modules);
}

}  // namespace gossamer::commands
