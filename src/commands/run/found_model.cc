// SPDX-License-Identifier: Apache-2.0
#include "commands/run/found_model.h"

#include <fmt/format.h>

#include <utility>

#include "commands/run/kept_network.h"
#include "host/api/files.h"
#include "run/resume_command.h"
#include "run/run_directory.h"
#include "tensors/model_directory.h"

namespace gossamer::commands {
namespace {

// How a finished run gets its model again. Checkpoints may be deleted once the model is there.
std::string model_again(host::Disk& disk, const std::string& directory) {
  const run::RunPaths paths(directory);
  const auto summary = host::read_text(disk, paths.summary());
  const auto kept = summary.ok() ? kept_network(disk, paths, *summary) : Result<KeptNetwork>(summary.error());
  const std::string command = run::resume_command(disk, directory);
  if (!kept.ok() || !kept->trained)
    return "restore the model from a copy, or train its last steps again, as this says: " + command;
  const auto has = [&disk](const std::string& path) {
    const auto there = disk.exists(path);
    return there.ok() && *there;
  };
  return fmt::format(
      "write the model again{}: {}",
      has(paths.cache()) || has(paths.data()) ? "" : ", with the training data where they were", command);
}

// A run that is not finished, or whose model is gone, is told how it gets one.
Error no_model(host::Disk& disk, const std::string& directory) {
  const run::RunPaths paths(directory);
  Error error{.kind = ErrorKind::kFailed,
              .where = directory,
              .what = "there is no model in this directory",
              .got = "no model/model.json",
              .expected = "the directory of a finished run (train --out DIR), or its model/",
              .fix = "check the path"};
  const auto run = disk.exists(paths.config());
  if (!run.ok() || !*run) return error;
  const auto finished = disk.exists(paths.summary());
  const bool gone = finished.ok() && *finished;
  error.got = gone ? "a finished run whose model is gone" : "a run that has not finished";
  error.fix = gone ? model_again(disk, directory) : "finish it: " + run::resume_command(disk, directory);
  return error;
}

}  // namespace

Result<std::string> find_model(const run::NodeHost& host, const std::string& directory) {
  for (const std::string& path : {directory + "/model", directory}) {
    // A crash may have left the model under the name that it has while another takes its place.
    const auto found = tensors::find_directory(host.disk, path);
    if (!found.ok()) return found.error();
    auto there = host.disk.exists(*found + "/model.json");
    if (!there.ok()) return there.error();
    if (*there) return path;
  }
  return no_model(host.disk, directory);
}

Error model_error(const run::NodeHost& host, const std::string& directory, Error error) {
  const run::RunPaths paths(directory);
  const auto file = host.disk.exists(error.where);
  const bool gone = error.where.starts_with(paths.model()) && file.ok() && !*file;
  if (error.kind != ErrorKind::kBadData && !gone) return error;
  for (const std::string& path : {paths.config(), paths.summary(), paths.model()}) {
    const auto there = host.disk.exists(path);
    if (!there.ok() || !*there) return error;
  }
  error.fix = model_again(host.disk, directory);
  return error;
}

}  // namespace gossamer::commands
