// SPDX-License-Identifier: Apache-2.0
//
// RunDirectory is the directory of one run (`train --out DIR`), with the rules for continuing one. Everything
// of a run lies in it and nothing outside, so it can be moved, copied and deleted as a whole.
//
//   run.toml        the resolved config            checkpoints/  to continue from
//   metrics.jsonl   a line per reported step       cache/        the imported data, may be deleted
//   events.jsonl    what happened                  model/        the result: all that predict needs
//   summary.json    written last: the run is done  curve.svg     a picture of metrics.jsonl
//   data.sum        tells the data from other data data/         the imported text of a language model
//
// Owner: the training command, one thread. It holds the directory's lock, so two runs cannot share one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"
#include "run/engine_key.h"
#include "settings/key_table.h"

namespace gossamer::run {

struct RunPaths {
  explicit RunPaths(std::string directory) : root(std::move(directory)) {}
  std::string root;
  [[nodiscard]] std::string config() const { return root + "/run.toml"; }
  [[nodiscard]] std::string metrics() const { return root + "/metrics.jsonl"; }
  [[nodiscard]] std::string events() const { return root + "/events.jsonl"; }
  [[nodiscard]] std::string checkpoints() const { return root + "/checkpoints"; }
  // The process that leads members has it: lead.toml, and what it keeps for them.
  [[nodiscard]] std::string lead() const { return root + "/nodes/coordinator"; }
  [[nodiscard]] std::string parts() const { return root + "/nodes/parts"; }
  [[nodiscard]] std::string reports() const { return root + "/nodes/reports"; }
  [[nodiscard]] std::string cache() const { return root + "/cache"; }
  [[nodiscard]] std::string data() const { return root + "/data"; }
  [[nodiscard]] std::string data_sum() const { return root + "/data.sum"; }
  [[nodiscard]] std::string model() const { return root + "/model"; }
  [[nodiscard]] std::string curve() const { return root + "/curve.svg"; }
  [[nodiscard]] std::string summary() const { return root + "/summary.json"; }
};

enum class Continue { kNo, kResume };

struct OpenRun {
  std::string directory;
  Continue resume = Continue::kNo;
  RunEngine engine = {};
  // The config that preset, file and overrides make; and what of it the user wrote.
  settings::Values config;
  std::vector<settings::KeySetting> settings;
  std::string run_id;  // of a new run: letters and digits
  int threads = 0;     // of this process; 0: the run does not keep them
};

// The run id of a run.toml, of which `text` has at least the first line; "unknown" where it names none.
[[nodiscard]] std::string run_id_of(std::string_view text);
// The threads with which the run in a directory was done last. Nothing: no run, or one that has not kept
// them.
[[nodiscard]] std::optional<int> threads_of_run(host::Disk& disk, const std::string& directory);
// Whether a run.toml is that of a RunDirectory.
[[nodiscard]] bool is_training_config(std::string_view text);
// The engine of the training run in a directory. Nothing: there is none. `unnamed`: as in RunEngine. kUsage
// for a run.toml that cannot be read as TOML.
[[nodiscard]] Result<std::optional<std::string>> engine_of_run(host::Disk& disk, const std::string& directory,
                                                               const std::string& unnamed);

class RunDirectory {
 public:
  // Opens DIR for a run.
  //  - kNo: DIR must be missing or empty (kUsage).
  //  - kResume: DIR may also hold a run. Then its run.toml is the config, and a setting that differs from it
  //    is refused (kUsage, names the key). `auto` differs from nothing. A file that the run still reads may
  //    lie elsewhere (KeyRules::kept_in). A run of another engine and a directory of something else are
  //    refused.
  // Another process at work in DIR: kRefused. Writes run.toml.
  [[nodiscard]] static Result<RunDirectory> open(host::Disk& disk, const OpenRun& wanted);

  // Replaces run.toml, for values that were derived meanwhile.
  [[nodiscard]] Result<void> write_config(const settings::Values& config);

  [[nodiscard]] const RunPaths& paths() const { return paths_; }
  // Whether the run begins here: then config() is the wanted one.
  [[nodiscard]] bool is_new() const { return fresh_; }
  [[nodiscard]] const settings::Values& config() const { return config_; }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  // The threads of the process before this one; nothing where it kept none.
  [[nodiscard]] std::optional<int> threads_before() const { return threads_before_; }
  // The summary of a finished run.
  [[nodiscard]] const std::optional<std::string>& finished_summary() const { return summary_; }

  // To be called after a failure before the first step. Removes all that this run made, if DIR was
  // missing or empty before, so that the same command works once the cause is mended. Its own errors are
  // of no use any more and are ignored.
  void abandon();

 private:
  RunDirectory(host::Disk& disk, const OpenRun& wanted)
      : disk_(disk),
        paths_(wanted.directory),
        engine_(wanted.engine),
        threads_(wanted.threads),
        config_(wanted.config) {}

  host::Disk& disk_;
  RunPaths paths_;
  RunEngine engine_;
  int threads_;
  std::optional<int> threads_before_;
  std::unique_ptr<host::DirectoryLock> lock_;
  settings::Values config_;
  std::string run_id_;
  std::optional<std::string> summary_;
  bool existed_ = false;  // DIR was there before
  bool fresh_ = false;    // nothing of a run was in it
};

}  // namespace gossamer::run
