// SPDX-License-Identifier: Apache-2.0
//
// The two disks side by side: the same random calls must give the same results and the same words.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "base/rng.h"
#include "host/api/files.h"
#include "hosts.h"

namespace gossamer::host {
namespace {

constexpr std::uint64_t kHistories = 150;
constexpr int kCalls = 40;
// Names that collide as files, as directories and as parts of each other.
constexpr std::array<const char*, 8> kNames = {"a", "b", "a/x", "a/y", "b/x", "a/x/deep", "a/../b", "./a//x"};

template <class T>
std::string told(const Result<T>& result, std::string_view value) {
  if (result.ok()) return fmt::format("ok {}", value);
  return fmt::format("{} {} {}", name(result.error().kind), result.error().where, result.error().what);
}

std::string write(Disk& disk, const std::string& path, WriteMode mode, std::string_view text) {
  auto file = disk.open_writable(path, mode);
  if (!file.ok()) return told(file, "");
  std::string answers = told((*file)->append(bytes_of(text)), "");
  answers += told((*file)->sync(), "");
  answers += told((*file)->close(), "");
  return answers;
}

struct Call {
  std::uint64_t action;
  std::string from;
  std::string to;
  std::string text;
};

// The disk's answer to a call, as text.
std::string answer(Disk& disk, const Call& call) {
  switch (call.action) {
    case 0: return "truncate " + write(disk, call.from, WriteMode::kTruncate, call.text);
    case 1: return "append " + write(disk, call.from, WriteMode::kAppend, call.text);
    case 2: return "make " + told(disk.make_directories(call.from), "");
    case 3: return fmt::format("rename {} ", call.to) + told(disk.rename(call.from, call.to), "");
    case 4: return "remove " + told(disk.remove_all(call.from), "");
    case 5: {
      const auto text = read_text(disk, call.from);
      return "read " + told(text, text.ok() ? *text : "");
    }
    case 6: {
      const auto map = disk.map(call.from);
      return "map " + told(map, map.ok() ? text_of((*map)->bytes()) : "");
    }
    case 7: {
      const auto names = disk.list(call.from);
      return "list " + told(names, names.ok() ? fmt::format("{}", fmt::join(*names, " ")) : "");
    }
    case 8: {
      const auto size = disk.file_size(call.from);
      return "size " + told(size, size.ok() ? std::to_string(*size) : "");
    }
    case 9: {
      const auto there = disk.exists(call.from);
      return "exists " + told(there, there.ok() && *there ? "yes" : "no");
    }
    case 10: return "sync " + told(disk.sync_directory(call.from), "");
    default: return "replace " + told(replace_file(disk, call.from, call.text), "");
  }
}

// Every answer is the same on both hosts, errors included.
TEST(SameBehaviour, RandomHistories) {
  const std::string root = fmt::format("{}gossamer_same_behaviour_{}", ::testing::TempDir(), ::getpid());
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const auto posix = make_disk(HostKind::kPosix);
    const auto sim = make_disk(HostKind::kSim);
    ASSERT_TRUE(posix->remove_all(root).ok());
    ASSERT_TRUE(posix->make_directories(root).ok());
    ASSERT_TRUE(sim->make_directories(root).ok());
    std::string history;
    for (int i = 0; i < kCalls; ++i) {
      const auto some_path = [&] { return root + "/" + kNames[rng.below(kNames.size())]; };
      const Call call{.action = rng.below(12),
                      .from = some_path(),
                      .to = some_path(),
                      .text = std::string(rng.below(5), static_cast<char>('a' + i % 26))};
      // Making the part before ".." is not promised either way.
      if (call.action == 2 && call.from.find("..") != std::string::npos) continue;
      const std::string expected = answer(*posix, call);
      history += fmt::format("  {}: {}\n", call.from, expected);
      ASSERT_EQ(answer(*sim, call), expected) << "seed " << seed << ", history:\n" << history;
    }
    ASSERT_TRUE(posix->remove_all(root).ok());
  }
}

}  // namespace
}  // namespace gossamer::host
