// SPDX-License-Identifier: Apache-2.0
#include "commands/train/data_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/printable.h"
#include "base/shell_word.h"
#include "host/api/files.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kDigits = 16;

bool is_sum(std::string_view text) {
  return text.size() == kDigits + 1 && text.ends_with('\n') &&
         text.substr(0, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Error damaged(const std::string& path, std::string_view text, const RunData& data) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "the checksum of the run's data is damaged",
          .got = quote(text.substr(0, kDigits)),
          .expected = "16 hexadecimal digits and a line end",
          .fix = fmt::format("if the training records are those of the run's beginning: rm {}, then: {}",
                             shell_word(path), data.resume_command)};
}

Error other_data(const run::RunPaths& paths, std::string_view begun, std::string_view now,
                 const RunData& data) {
  return {.kind = ErrorKind::kUsage,
          .where = data.from,
          .what = "these are not the training records that the run began with",
          .got = fmt::format("records with the checksum {}", now),
          .expected = fmt::format("{}, as in {}", begun, paths.data_sum()),
          .fix = fmt::format("put those records back, then: rm -rf {}; {}; other records are for a new run",
                             shell_word(paths.cache()), data.resume_command)};
}

}  // namespace

Result<void> check_run_data(host::Disk& disk, const run::RunPaths& paths, const RunData& data) {
  const std::string path = paths.data_sum();
  const std::string now = fmt::format("{:016x}\n", data.checksum);
  const auto kept = has_data_sum(disk, paths);
  if (!kept.ok()) return kept.error();
  if (!*kept) return host::replace_file(disk, path, now);
  const auto begun = host::read_text(disk, path);
  if (!begun.ok()) return begun.error();
  if (*begun == now) return {};
  if (!is_sum(*begun)) return damaged(path, *begun, data);
  return other_data(paths, begun->substr(0, kDigits), now.substr(0, kDigits), data);
}

Result<bool> has_data_sum(host::Disk& disk, const run::RunPaths& paths) {
  return disk.exists(paths.data_sum());
}

}  // namespace gossamer::commands
