// SPDX-License-Identifier: Apache-2.0
#include "commands/run/data_sum.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/printable.h"
#include "base/shell_word.h"
#include "host/api/files.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kDigits = 16;

std::string line_of(std::uint64_t checksum) { return fmt::format("{:016x}\n", checksum); }

bool is_sum(std::string_view text) {
  return text.size() == kDigits + 1 && text.ends_with('\n') &&
         text.substr(0, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Error damaged(const std::string& path, std::string_view text) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "the checksum of the run's data is damaged",
          .got = quote(text.substr(0, kDigits)),
          .expected = "16 hexadecimal digits and a line end",
          .fix = fmt::format("if the training data are those of the run's beginning: rm {}, and resume",
                             shell_word(path))};
}

}  // namespace

Result<RunData> check_run_data(host::Disk& disk, const run::RunPaths& paths, const DataSum& data) {
  const std::string path = paths.data_sum();
  const std::string now = line_of(data.checksum);
  const auto keep = [&]() -> Result<RunData> {
    const auto done = host::replace_file(disk, path, now);
    return done.ok() ? Result<RunData>(RunData::kSame) : done.error();
  };
  const auto kept = has_data_sum(disk, paths);
  if (!kept.ok()) return kept.error();
  if (!*kept) return keep();
  const auto begun = host::read_text(disk, path);
  if (!begun.ok()) return begun.error();
  if (*begun == now) return RunData::kSame;
  if (data.former && *begun == line_of(*data.former)) return keep();
  if (!is_sum(*begun)) return damaged(path, *begun);
  return RunData::kOther;
}

Result<bool> has_data_sum(host::Disk& disk, const run::RunPaths& paths) {
  return disk.exists(paths.data_sum());
}

}  // namespace gossamer::commands
