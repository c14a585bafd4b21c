// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/rank_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "host/api/files.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kNumber = sizeof(std::uint64_t);
constexpr std::string_view kPrefix = "ranks-";

Result<std::vector<std::uint32_t>> read_ranks(host::Disk& disk, const std::string& path) {
  const auto mapped = disk.map(path);
  if (!mapped.ok()) return mapped.error();
  const std::span<const std::byte> file = (*mapped)->bytes();
  const auto damaged = [&](std::string got) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = path,
                 .what = "what a node has measured is damaged",
                 .got = std::move(got),
                 .expected = "the ranks as the node wrote them",
                 .fix = "look after the disk, and train again"};
  };
  if (file.size() < 2 * kNumber) return damaged(fmt::format("{} bytes", file.size()));
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  std::memcpy(&count, file.data(), kNumber);
  std::memcpy(&sum, file.last(kNumber).data(), kNumber);
  const std::span<const std::byte> ranks = file.subspan(kNumber, file.size() - 2 * kNumber);
  if (count != ranks.size() / sizeof(std::uint32_t) || ranks.size() % sizeof(std::uint32_t) != 0)
    return damaged(fmt::format("{} bytes for {} ranks", ranks.size(), count));
  if (XXH3_64bits(file.data(), file.size() - kNumber) != sum) return damaged("a wrong checksum");
  std::vector<std::uint32_t> out(count);
  if (count > 0) std::memcpy(out.data(), ranks.data(), ranks.size());
  return out;
}

}  // namespace

Result<void> save_ranks(host::Disk& disk, const std::string& directory, const RankFile& file,
                        std::span<const std::uint32_t> ranks) {
  if (auto made = disk.make_directories(directory); !made.ok()) return made;
  const std::uint64_t count = ranks.size();
  std::string bytes(reinterpret_cast<const char*>(&count), kNumber);
  bytes.append(reinterpret_cast<const char*>(ranks.data()), ranks.size_bytes());
  const std::uint64_t sum = XXH3_64bits(bytes.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(&sum), kNumber);
  return host::replace_file(
      disk, fmt::format("{}/{}{}-{}", directory, kPrefix, file.node.value, file.step.value), bytes);
}

Result<std::optional<std::vector<std::uint32_t>>> load_ranks(host::Disk& disk, const std::string& directory,
                                                             StepNumber step) {
  using Loaded = std::optional<std::vector<std::uint32_t>>;
  const auto there = disk.exists(directory);
  if (!there.ok()) return there.error();
  if (!*there) return Loaded();
  const auto names = disk.list(directory);
  if (!names.ok()) return names.error();
  const std::string suffix = fmt::format("-{}", step.value);
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) continue;
    auto ranks = read_ranks(disk, directory + "/" + name);
    if (!ranks.ok()) return ranks.error();
    return Loaded(*std::move(ranks));
  }
  return Loaded();
}

}  // namespace gossamer::commands
