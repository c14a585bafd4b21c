// SPDX-License-Identifier: Apache-2.0
#include "commands/records/line_copy.h"

#include "commands/records/training_data.h"
#include "learn/data/read/import.h"
#include "run/progress.h"

namespace gossamer::commands {

Result<data::ReadReport> copy_lines(const run::NodeHost& host, const LineCopy& copy, CopySource copy_source) {
  run::LineFile file(host.disk, copy.path);
  if (auto done = file.open(); !done.ok()) return done.error();
  run::Progress progress(host.console, host.clock, "reading", host.verbosity);
  data::ImportOptions options{.sources = copy.request.sources,
                              .cache_path = copy.path,
                              .read = {.skip_bad = copy.request.skip_bad, .compute = &host.compute}};
  options.open = [&](const std::string& path) {
    return open_source(host.disk, {.path = path, .format = copy.request.kind, .as_is = copy.request.as_is});
  };
  options.read.progress = [&](const data::ReadProgress& now) -> Result<void> {
    progress.update({.done = now.records, .total = 0, .unit = copy.unit, .detail = {}});
    return {};
  };
  auto report =
      data::read_sources(host.disk, options, [&](data::ByteSource& source, const data::ReadOptions& read) {
        return copy_source(source, read, file);
      });
  if (!report.ok()) return report;
  if (auto done = file.publish(); !done.ok()) return done.error();
  return report;
}

}  // namespace gossamer::commands
