// SPDX-License-Identifier: Apache-2.0
#include "commands/lm_fleet/lm_member.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "commands/run/led_configuration.h"
#include "commands/run/member_files.h"
#include "engines/pipeline/config/lm_config.h"
#include "engines/pipeline/fleet/pipeline_engine.h"
#include "learn/tokens/token_file.h"
#include "learn/tokens/token_windows.h"
#include "settings/toml.h"

namespace gossamer::commands {
namespace {

using pipeline::PipelineJob;
using pipeline::StageBench;

// What the job's functions use. It lives as long as the job.
struct JobFiles {
  JobFiles(host::Disk& disk, const node::Supplied& supplied, NodeId self) : files(disk, supplied, self) {}

  MemberFiles files;
  pipeline::LmConfig config;
  std::unique_ptr<tokens::TokenFile> text;
  std::optional<tokens::TokenWindows> windows;
  MakeStage make_stage;  // once it is needed
};

Result<void> restore(JobFiles& job, StageBench& stage) {
  for (const tensors::NamedTensor& tensor : stage.state()) {
    const auto bytes = job.files.at_start(tensor.name, tensor.bytes.size());
    if (!bytes.ok()) return bytes.error();
    if (*bytes) std::memcpy(tensor.bytes.data(), (*bytes)->data(), tensor.bytes.size());
  }
  return stage.state_changed();
}

// Reads what the lead tells, and the tokens.
Result<std::shared_ptr<JobFiles>> open_files(const MemberPlace& place, const node::Supplied& supplied,
                                             const LedConfiguration& told) {
  auto job = std::make_shared<JobFiles>(place.host.disk, supplied, place.self);
  const auto config = settings::read_config(pipeline::lm_keys(), told.keys, "the run's keys");
  if (!config.ok()) return config.error();
  job->config = *config;
  if (auto begun = job->files.begin(told); !begun.ok()) return begun.error();
  auto text = tokens::TokenFile::open(place.host.disk, job->files.path_of(std::string(kLmTokens)),
                                      place.host.compute);
  if (!text.ok()) return text.error();
  job->text = *std::move(text);
  const std::uint32_t context = pipeline::shape_of(job->config, 1).context;
  auto windows = tokens::TokenWindows::cut(*job->text, {.context = context, .seed = job->config.seed});
  if (!windows.ok()) return windows.error();
  job->windows.emplace(*std::move(windows));
  return job;
}

PipelineJob job_of(const MemberPlace& place, const LmModules& modules, const LedConfiguration& told,
                   const std::shared_ptr<JobFiles>& job) {
  const pipeline::LmShape shape = pipeline::shape_of(job->config, job->text->vocabulary());
  const pipeline::TrainerOptions trainer = pipeline::trainer_options(job->config);
  PipelineJob made;
  made.layers = shape.layers;
  made.context = shape.context;
  made.batch = trainer.batch;
  made.microbatch = trainer.microbatch;
  made.schedule = trainer.schedule;
  made.adamw = trainer.adamw;
  made.clip = trainer.clip;
  made.codec = job->config.pipeline.codec;
  made.rounds_sums = job->config.pipeline.sums == pipeline::LmSums::kBf16;
  made.end = StepNumber(told.steps);
  made.start = told.start;
  made.save_every = job->config.checkpoint.every_steps;
  made.make_stage = [&host = place.host, open = modules.stages, job, shape](
                        const pipeline::StageCut& cut) -> Result<std::unique_ptr<pipeline::StageBackend>> {
    if (!job->make_stage) {
      auto opened = open(host);
      if (!opened.ok()) return opened.error();
      job->make_stage = *std::move(opened);
    }
    return job->make_stage({.shape = shape,
                            .cut = cut,
                            .precision = job->config.train.precision,
                            .seed = job->config.seed,
                            .threads = host.compute.workers()});
  };
  made.read = [job](SampleId first, std::uint32_t windows, std::span<pipeline::TokenNumber> tokens,
                    std::span<pipeline::TokenNumber> targets) -> Result<void> {
    const std::size_t context = job->windows->context();
    for (std::uint32_t i = 0; i < windows; ++i) {
      job->windows->read(SampleId(first.value + i), tokens.subspan(i * context, context),
                         targets.subspan(i * context, context));
    }
    return {};
  };
  made.restore = [job](StageBench& stage) { return restore(*job, stage); };
  made.save = [job](StepNumber next, StageBench& stage) { job->files.save(next, stage.state()); };
  made.deliver = [job](StageBench& stage) { return job->files.deliver(stage.state()); };
  return made;
}

std::unique_ptr<cluster::Engine> make_engine(const MemberPlace& place, const LmModules& modules,
                                             const node::Supplied& supplied) {
  auto engine = std::make_unique<pipeline::PipelineEngine>(
      place.process,
      [place, modules, supplied](const std::string& bytes) -> Result<std::shared_ptr<const PipelineJob>> {
        const auto told = read_led_configuration(bytes);
        if (!told.ok()) return told.error();
        auto files = open_files(place, supplied, *told);
        if (!files.ok()) return files.error();
        return std::make_shared<const PipelineJob>(job_of(place, modules, *told, *files));
      });
  engine->tell_applied([tell = supplied.tell](const pipeline::PipelineEngine::Applied& step) {
    // Each member knows the whole loss by the records of all. So a step is told by any one that lives.
    tell(report_bytes(engine::MemberStep{
        .epoch = step.epoch, .step = step.step, .members = 1, .loss = step.loss, .sent = step.sent}));
  });
  return engine;
}

}  // namespace

MemberKinds lm_member(const MemberPlace& place, const LmModules& modules) {
  return {.kinds = {{.name = "lm",
                     .needs = node::Needs::kSupply,
                     .make = [place, modules](const node::Supplied& supplied) {
                       return make_engine(place, modules, supplied);
                     }}}};
}

}  // namespace gossamer::commands
