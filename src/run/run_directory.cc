// SPDX-License-Identifier: Apache-2.0
#include "run/run_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "host/api/durable_directories.h"
#include "host/api/files.h"
#include "settings/toml.h"

namespace gossamer::run {
namespace {

using settings::KeySetting;
using settings::Values;

Error usage(std::string where, std::string what) {
  return {.kind = ErrorKind::kUsage, .where = std::move(where), .what = std::move(what)};
}

// Names that a directory may hold and still count as empty: the lock, and what a crash left of run.toml.
bool is_trace(const std::string& name) { return name == ".lock" || name == "run.toml.tmp"; }

constexpr std::string_view kRunLine = "# run ";
constexpr std::string_view kThreadsLine = "# threads ";

// The second line of a run.toml says them, in a comment: they are no key, and shape only the last bits.
std::optional<int> threads_in(std::string_view text) {
  const std::size_t second = text.find('\n');
  if (!is_training_config(text) || second == std::string_view::npos) return std::nullopt;
  text.remove_prefix(second + 1);
  if (!text.starts_with(kThreadsLine)) return std::nullopt;
  text.remove_prefix(kThreadsLine.size());
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  const bool whole_line = end != text.data() + text.size() && *end == '\n';
  return error == std::errc() && whole_line && threads > 0 ? std::optional(threads) : std::nullopt;
}

// The config of a run.toml. The engine is looked at first: its keys are not those of another.
Result<Values> read_config(const OpenRun& wanted, std::string_view text, const std::string& path) {
  auto table = settings::parse_toml(text, path);
  if (!table.ok()) return table.error();
  const auto named = take_engine(*table);
  const std::string& of_run = named ? named->name : wanted.engine.unnamed;
  if (of_run != wanted.engine.name)
    return other_engine(named ? named->where : path, of_run, wanted.engine.name);
  const settings::Keys& keys = wanted.config.keys();
  const auto read = settings::read_settings(keys, *table);
  if (!read.ok()) return read.error();
  Values config = keys.defaults();
  if (auto done = config.apply(*read); !done.ok()) return done.error();
  return config;
}

Error other_value(const settings::Key& key, const Values& old, const Values& wanted, std::string where) {
  return {.kind = ErrorKind::kUsage,
          .where = std::move(where),
          .what = fmt::format("the run to resume has another {}", key.name),
          .got = fmt::format("{} = {}", key.name, wanted.text(key)),
          .expected = fmt::format("{} = {}, as in its run.toml", key.name, old.text(key)),
          .fix = "leave the key out, or start a new run in another directory"};
}

// Whether the run still reads the file of that key, so that the user may say where it lies now.
Result<bool> may_lie_elsewhere(host::Disk& disk, const RunPaths& paths, const settings::Key& key) {
  if (!key.rules.kept_in) return false;
  const auto finished = disk.exists(paths.summary());
  if (!finished.ok() || *finished) return finished.ok() ? Result<bool>(false) : finished.error();
  if (key.rules.kept_in->empty()) return true;
  const auto kept = disk.exists(fmt::format("{}/{}", paths.root, *key.rules.kept_in));
  return kept.ok() ? Result<bool>(!*kept) : kept.error();
}

// The config of the old run, with the new places of the files that it still reads. kUsage: the first setting
// that the old run contradicts.
Result<Values> resumed_config(host::Disk& disk, const RunPaths& paths, const Values& old,
                              const std::vector<KeySetting>& written) {
  Values wanted = old;
  if (auto done = wanted.apply(written); !done.ok()) return done.error();
  std::vector<KeySetting> moved;
  for (const settings::Key& key : old.keys().all()) {
    const std::string& now = wanted.text(key);
    if (old.text(key) == now || now == key.rules.unset) continue;
    const auto may = may_lie_elsewhere(disk, paths, key);
    if (!may.ok()) return may.error();
    if (!*may) return other_value(key, old, wanted, paths.config());
    moved.push_back({.name = std::string(key.name), .text = now});
  }
  Values config = old;
  if (auto done = config.apply(moved); !done.ok()) return done.error();
  return config;
}

// Whether these are the names in the directory of a run that was begun.
bool are_of_a_run(const std::vector<std::string>& names) {
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  return has("checkpoints") && has("events.jsonl");
}

Error lost_config(const std::string& directory) {
  Error error = usage(directory, "this run has lost its run.toml, without which it cannot go on");
  error.got = "other files of a run";
  error.expected = "run.toml as the run has written it";
  error.fix = "restore it from a copy, or give another --out";
  return error;
}

Error not_empty(const std::string& directory, bool is_run) {
  Error error = usage(directory, "the directory for the run is not empty");
  error.got = is_run ? "an earlier run" : "files of something else";
  error.expected = "a directory that is missing or empty";
  error.fix = is_run ? "add --resume to continue it, or give another --out" : "give another --out";
  return error;
}

}  // namespace

// The id stands in the first line, which is a comment.
std::string run_id_of(std::string_view text) {
  if (!is_training_config(text)) return "unknown";
  return std::string(text.substr(kRunLine.size(), text.find('\n') - kRunLine.size()));
}

std::optional<int> threads_of_run(host::Disk& disk, const std::string& directory) {
  const auto text = host::read_text(disk, RunPaths(directory).config());
  return text.ok() ? threads_in(*text) : std::nullopt;
}

bool is_training_config(std::string_view text) { return text.starts_with(kRunLine); }

Result<std::optional<std::string>> engine_of_run(host::Disk& disk, const std::string& directory,
                                                 const std::string& unnamed) {
  using Found = std::optional<std::string>;
  const std::string path = RunPaths(directory).config();
  const auto there = disk.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return Found();
  const auto text = host::read_text(disk, path);
  if (!text.ok()) return text.error();
  if (!is_training_config(*text)) return Found();
  auto table = settings::parse_toml(*text, path);
  if (!table.ok()) return table.error();
  const auto named = take_engine(*table);
  return Found(named ? named->name : unnamed);
}

Result<RunDirectory> RunDirectory::open(host::Disk& disk, const OpenRun& wanted) {
  const std::string& directory = wanted.directory;
  RunDirectory run(disk, wanted);
  auto existed = disk.exists(directory);
  if (!existed.ok()) return existed.error();
  run.existed_ = *existed;
  if (run.existed_) {
    auto names = disk.list(directory);
    if (!names.ok()) return names.error();
    run.fresh_ = std::ranges::all_of(*names, is_trace);
    const bool is_run = std::ranges::find(*names, "run.toml") != names->end();
    if (!is_run && are_of_a_run(*names)) return lost_config(directory);
    if (!run.fresh_ && (wanted.resume == Continue::kNo || !is_run)) return not_empty(directory, is_run);
  } else {
    run.fresh_ = true;
    if (auto done = host::make_durable_directories(disk, directory); !done.ok()) return done.error();
  }
  auto lock = disk.lock(directory);
  if (!lock.ok()) return lock.error();
  run.lock_ = std::move(*lock);

  if (run.fresh_) {
    run.run_id_ = wanted.run_id;
    if (auto done = run.write_config(wanted.config); !done.ok()) {
      run.abandon();
      return done.error();
    }
    return run;
  }
  auto text = host::read_text(disk, run.paths_.config());
  if (!text.ok()) return text.error();
  auto config = read_config(wanted, *text, run.paths_.config());
  if (!config.ok()) return config.error();
  run.config_ = *std::move(config);
  run.run_id_ = run_id_of(*text);
  run.threads_before_ = threads_in(*text);
  auto resumed = resumed_config(disk, run.paths_, run.config_, wanted.settings);
  if (!resumed.ok()) return resumed.error();
  auto finished = disk.exists(run.paths_.summary());
  if (!finished.ok()) return finished.error();
  if (*finished) {
    auto summary = host::read_text(disk, run.paths_.summary());
    if (!summary.ok()) return summary.error();
    run.summary_ = std::move(*summary);
  }
  run.config_ = *std::move(resumed);
  return run;
}

Result<void> RunDirectory::write_config(const Values& config) {
  config_ = config;
  const std::string threads = threads_ > 0 ? fmt::format("{}{}\n", kThreadsLine, threads_) : std::string();
  const std::string text = fmt::format("{}{}\n{}{}{}", kRunLine, run_id_, threads, engine_line(engine_),
                                       settings::to_toml(config));
  return host::replace_file(disk_, paths_.config(), text);
}

void RunDirectory::abandon() {
  if (!fresh_) return;
  // A process that is killed here leaves run.toml beside whatever else is left, so that --resume goes on.
  for (const std::string& path : {paths_.config() + ".tmp", paths_.metrics(), paths_.events(), paths_.cache(),
                                  paths_.data(), paths_.data_sum(), paths_.data_sum() + ".tmp",
                                  paths_.checkpoints(), paths_.config(), paths_.root + "/.lock"}) {
    static_cast<void>(disk_.remove_all(path));
  }
  lock_.reset();
  if (existed_) return;
  const auto names = disk_.list(paths_.root);
  if (names.ok() && (*names).empty()) static_cast<void>(disk_.remove_all(paths_.root));
}

}  // namespace gossamer::run
