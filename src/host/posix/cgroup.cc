// SPDX-License-Identifier: Apache-2.0
#include "host/posix/cgroup.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "host/api/files.h"

namespace gossamer::host {
namespace {

// Cuts the text before the first `end` off `rest`, and drops the `end`.
std::string_view take_until(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view head = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

// The number at the start of the text after blanks; nothing for "max" or "-1".
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// Empty when the file cannot be read.
std::string text_of(Disk& disk, const std::string& path) {
  auto text = read_text(disk, path);
  return text.ok() ? *text : std::string();
}

// Directories of this process's group for `controller` and of all groups above it, version 1 and 2. A
// container often sees only the top one, so a directory may be missing.
std::vector<std::string> group_directories(Disk& disk, const std::string& root, std::string_view controller) {
  const std::string membership = text_of(disk, root + "/proc/self/cgroup");
  std::vector<std::string> directories;
  for (std::string_view rest = membership; !rest.empty();) {
    // NUMBER:CONTROLLER,CONTROLLER:PATH; version 2 has no controllers.
    std::string_view line = take_until(rest, '\n');
    static_cast<void>(take_until(line, ':'));
    std::string_view names = take_until(line, ':');
    std::string top = root + "/sys/fs/cgroup";
    if (!names.empty()) {
      bool found = false;
      for (std::string_view left = names; !left.empty();) found |= take_until(left, ',') == controller;
      if (!found) continue;
      top += '/';
      top += controller;
    }
    for (std::string group(line); group.size() > 1; group = group.substr(0, group.find_last_of('/'))) {
      directories.push_back(top + group);
    }
    directories.push_back(top);
  }
  return directories;
}

}  // namespace

std::uint64_t usable_memory_bytes(Disk& disk, const std::string& root) {
  std::uint64_t bytes = std::uint64_t{1} << 63;
  const std::string machine = text_of(disk, root + "/proc/meminfo");
  for (std::string_view rest = machine; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (take_until(line, ':') != "MemTotal") continue;
    if (const auto kib = leading_number(line)) bytes = std::min(bytes, *kib * 1024);
  }
  for (const std::string& group : group_directories(disk, root, "memory")) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      if (const auto limit = leading_number(text_of(disk, group + file))) bytes = std::min(bytes, *limit);
    }
  }
  return bytes;
}

std::optional<double> cpu_quota_cores(Disk& disk, const std::string& root) {
  std::optional<double> cores;
  const auto limit = [&cores](std::optional<std::uint64_t> quota_us, std::optional<std::uint64_t> period_us) {
    if (!quota_us || !period_us || *period_us == 0) return;
    const double granted = static_cast<double>(*quota_us) / static_cast<double>(*period_us);
    cores = std::min(cores.value_or(granted), granted);
  };
  for (const std::string& group : group_directories(disk, root, "cpu")) {
    const std::string both = text_of(disk, group + "/cpu.max");  // "QUOTA PERIOD" or "max PERIOD"
    std::string_view period = both;
    const std::string_view quota = take_until(period, ' ');
    limit(leading_number(quota), leading_number(period));
    limit(leading_number(text_of(disk, group + "/cpu.cfs_quota_us")),
          leading_number(text_of(disk, group + "/cpu.cfs_period_us")));
  }
  return cores;
}

}  // namespace gossamer::host
