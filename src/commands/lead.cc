// SPDX-License-Identifier: Apache-2.0
#include "commands/lead.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/check.h"
#include "commands/engine/config_words.h"
#include "node/run_configuration.h"
#include "run/run_directory.h"

namespace gossamer::commands {
namespace {

Error other_than_kept(const std::string& directory, std::string got, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = run::lead_file_path(directory),
          .what = "the run in this directory has other keys",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "leave the keys out, or start a new run in another directory"};
}

// The keys of the directory's run, and those of the user on top of them.
Result<settings::Values> led_values(const KeyedLead::Wanted& wanted) {
  const std::vector<std::string>& kept = wanted.options.file.settings;
  settings::Values before = wanted.engine.keys->defaults();
  if (auto done = before.apply_words(kept); !done.ok()) return done.error();
  settings::Values values = before;
  const auto words = without_engine(wanted.words, wanted.engine, wanted.engine.name);
  if (!words.ok()) return words.error();
  if (auto done = values.apply_words(*words); !done.ok()) return done.error();
  if (auto done = wanted.engine.check(values); !done.ok()) return done.error();
  if (kept.empty() || values == before) return values;
  return other_than_kept(wanted.directory, fmt::format("{}", fmt::join(wanted.words, " ")),
                         fmt::format("{}", fmt::join(kept, " ")));
}

}  // namespace

Result<run::LeadFile> KeyedLead::kept(host::Disk& disk, const run::RunEngine& engine,
                                      const std::string& directory) {
  const auto trained = run::engine_of_run(disk, directory, engine.unnamed);
  if (!trained.ok()) return trained.error();
  if (trained->has_value())
    return run::other_engine(run::RunPaths(directory).config(), **trained, engine.name);
  auto file = run::read_lead_file(disk, directory);
  if (file.ok() && !file->engine.empty() && file->engine != engine.name)
    return run::other_engine(run::lead_file_path(directory), file->engine, engine.name);
  return file;
}

Result<std::unique_ptr<KeyedLead>> KeyedLead::start(const run::NodeHost& host, Wanted wanted) {
  const auto values = led_values(wanted);
  if (!values.ok()) return values.error();
  node::CoordinatorOptions& options = wanted.options;
  const std::string name(wanted.engine.name);
  CHECK(options.file.engine.empty() || options.file.engine == name, options.file.engine, name);
  auto led = wanted.engine.workload(*values);
  if (!led.ok()) return led.error();
  options.file.engine = name;
  options.file.settings.clear();
  for (const settings::Key& key : wanted.engine.keys->all())
    options.file.settings.push_back(fmt::format("{}={}", key.name, values->text(key)));
  options.configuration = node::run_configuration_bytes(
      {.engine = name, .program = options.program, .own = std::move(led->configuration)});
  options.tracks = std::move(led->tracks);
  std::unique_ptr<KeyedLead> lead(new KeyedLead(*std::move(led)));
  auto node = node::CoordinatorNode::start(host, std::move(options), *lead->led_.workload);
  if (!node.ok()) return node.error();
  lead->node_ = *std::move(node);
  return lead;
}

Result<std::string> KeyedLead::first_token() {
  if (!node_->new_run()) return std::string();
  return node_->new_token("printed at the start");
}

}  // namespace gossamer::commands
