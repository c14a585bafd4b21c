// SPDX-License-Identifier: Apache-2.0
//
// What only a real machine has: pipes, signals, devices, processes. The interface's promises:
// tests/conformance.
#include "host/posix/disk.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "host/api/files.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;

struct Pipe {
  Pipe() { CHECK(::pipe(ends.data()) == 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends[0]);
    close_writer();
  }
  void write(std::string_view text) const {
    CHECK(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void close_writer() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  // Waits for one byte.
  void await() const {
    char byte = 0;
    CHECK(::read(ends[0], &byte, 1) == 1);
  }

  std::array<int, 2> ends{};
};

std::string read_up_to(SequentialFile& file, std::size_t size) {
  std::string text(size, '?');
  const auto got = file.read(std::as_writable_bytes(std::span(text)));
  CHECK(got.ok());
  return text.substr(0, *got);
}

// A handler gets no argument of its own.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> signals_seen{0};

// A pipe hands out bytes piece by piece, while signals interrupt the reader: it still fills the reader's
// span. At its end the read is short, then empty.
TEST(PosixDisk, ReadsPipeWholeInSpiteOfPiecesAndSignals) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) { ++signals_seen; };  // no SA_RESTART: read() fails with EINTR
  CHECK(sigaction(SIGUSR1, &action, &before) == 0);
  Pipe pipe;
  PosixDisk disk;
  auto file = disk.open_sequential(fmt::format("/dev/fd/{}", pipe.ends[0]));
  ASSERT_TRUE(file.ok()) << file.error().message();
  const pthread_t reader = pthread_self();
  std::thread writer([&] {
    for (const char* piece : {"ab", "c", "defg"}) {
      for (int i = 0; i < 50; ++i) {
        // ThreadSanitizer keeps a signal until the read() that just begins has ended. So it is sent again.
        for (const int seen = signals_seen; signals_seen == seen; std::this_thread::yield())
          pthread_kill(reader, SIGUSR1);
      }
      pipe.write(piece);
    }
    pipe.close_writer();
  });
  const std::string first = read_up_to(**file, 5);
  const std::string second = read_up_to(**file, 5);
  const std::string third = read_up_to(**file, 5);
  writer.join();
  CHECK(sigaction(SIGUSR1, &before, nullptr) == 0);
  EXPECT_EQ(first, "abcde");
  EXPECT_EQ(second, "fg");
  EXPECT_EQ(third, "");
}

// "/dev/stdin" is standard input, and opening it again carries on where the first reader stopped.
TEST(PosixDisk, ReadsStandardInput) {
  Pipe pipe;
  const int saved = ::dup(STDIN_FILENO);
  CHECK(::dup2(pipe.ends[0], STDIN_FILENO) == STDIN_FILENO);
  pipe.write("one two");
  pipe.close_writer();
  PosixDisk disk;
  EXPECT_EQ(read_up_to(**disk.open_sequential("/dev/stdin"), 4), "one ");
  EXPECT_EQ(read_up_to(**disk.open_sequential("/dev/stdin"), 9), "two");
  if (saved >= 0) {
    CHECK(::dup2(saved, STDIN_FILENO) == STDIN_FILENO);
    ::close(saved);
  } else {
    ::close(STDIN_FILENO);
  }
}

// A device without room gives the system's words, the path and advice.
TEST(PosixDisk, FullDevice) {
  PosixDisk disk;
  auto file = disk.open_writable("/dev/full", WriteMode::kAppend);
  if (!file.ok()) GTEST_SKIP() << "needs /dev/full: " << file.error().message();
  const std::array<std::byte, 3> bytes{};
  const auto failed = (*file)->append(bytes);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message(),
            "/dev/full: cannot write: No space left on device; expected room on the disk; free some space or "
            "choose another disk");
}

// Claim: where the system takes a part of the bytes only, the rest follows in its order. (A signal ends a
// write to a full pipe early.)
TEST(PosixDisk, WritesAllInSpiteOfParts) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) { ++signals_seen; };  // no SA_RESTART: write() returns what it has written
  CHECK(sigaction(SIGUSR1, &action, &before) == 0);
  std::string text;
  while (text.size() < 500'000) text += fmt::format("{} ", text.size());
  Pipe pipe;
  PosixDisk disk;
  auto file = disk.open_writable(fmt::format("/dev/fd/{}", pipe.ends[1]), WriteMode::kAppend);
  ASSERT_TRUE(file.ok()) << file.error().message();
  const pthread_t writer = pthread_self();
  std::string read;
  std::thread reader([&] {
    std::array<char, 5000> piece{};
    while (read.size() < text.size()) {
      const ssize_t got = ::read(pipe.ends[0], piece.data(), piece.size());
      CHECK(got > 0);
      read.append(piece.data(), static_cast<std::size_t>(got));
      const int seen = signals_seen;
      pthread_kill(writer, SIGUSR1);
      while (signals_seen == seen) std::this_thread::yield();
    }
  });
  const auto done = (*file)->append(std::as_bytes(std::span(text)));
  reader.join();
  CHECK(sigaction(SIGUSR1, &before, nullptr) == 0);
  EXPECT_TRUE(done.ok());
  EXPECT_TRUE(read == text);
}

// A file system that counts no blocks has not "0 bytes free".
TEST(PosixDisk, UncountedSpaceIsUnknown) {
  PosixDisk disk;
  const auto free = disk.free_bytes("/proc");
  ASSERT_FALSE(free.ok()) << *free;
  EXPECT_THAT(free.error().message(), HasSubstr("cannot tell the free space"));
  EXPECT_TRUE(disk.free_bytes("/").ok());
}

// What has no size is refused where a size is needed, without waiting for it.
TEST(PosixDisk, PipeHasNoSize) {
  Pipe pipe;
  PosixDisk disk;
  const std::string path = fmt::format("/dev/fd/{}", pipe.ends[0]);
  EXPECT_THAT(disk.file_size(path).error().message(), HasSubstr("Not a regular file"));
  EXPECT_THAT(disk.map(path).error().message(), HasSubstr("Not a regular file"));
}

// A lock of another process is respected, and ends with that process even if it is killed.
TEST(PosixDisk, LockEndsWithItsProcess) {
  PosixDisk disk;
  const std::string directory = ::testing::TempDir() + "gossamer_posix_lock_test";
  ASSERT_TRUE(disk.remove_all(directory).ok());
  ASSERT_TRUE(disk.make_directories(directory).ok());
  Pipe locked;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the test
    const auto lock = disk.lock(directory);
    locked.write(lock.ok() ? "y" : "n");
    for (;;) ::pause();
  }
  locked.await();
  const auto refused = disk.lock(directory);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(disk.lock(directory).ok());
  EXPECT_TRUE(disk.remove_all(directory).ok());
}

// A private file is its owner's alone, whatever the umask, also if it was there before and open to others.
TEST(PosixDisk, PrivateFiles) {
  PosixDisk disk;
  const std::string directory = ::testing::TempDir() + "gossamer_posix_private_test";
  ASSERT_TRUE(disk.remove_all(directory).ok());
  ASSERT_TRUE(disk.make_directories(directory).ok());
  const mode_t before = ::umask(0);
  ASSERT_TRUE(disk.open_writable(directory + "/old", WriteMode::kTruncate).ok());
  ASSERT_EQ(::chmod((directory + "/old").c_str(), 0666), 0);
  for (const char* name : {"/old", "/new"}) {
    ASSERT_TRUE(disk.open_writable(directory + name, WriteMode::kPrivate).ok());
    struct stat info{};
    ASSERT_EQ(::stat((directory + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U) << name;
  }
  static_cast<void>(::umask(before));
  EXPECT_TRUE(disk.remove_all(directory).ok());
}

unsigned mode_of(const std::string& path) {
  struct stat info{};
  CHECK(::lstat(path.c_str(), &info) == 0, path);
  return info.st_mode & 0777U;
}

// Directories and locks are their owner's alone, whatever the umask, and a lock that was open to others is
// closed. A directory that is there stays as it is.
TEST(PosixDisk, DirectoriesAndLocksAreTheOwners) {
  PosixDisk disk;
  const std::string directory = ::testing::TempDir() + "gossamer_posix_owner_test";
  ASSERT_TRUE(disk.remove_all(directory).ok());
  const mode_t before = ::umask(0);
  ASSERT_TRUE(disk.make_directories(directory + "/a/b/").ok());
  for (const char* name : {"", "/a", "/a/b"}) EXPECT_EQ(mode_of(directory + name), 0700U) << name;
  ASSERT_EQ(::chmod((directory + "/a").c_str(), 0755), 0);
  ASSERT_TRUE(disk.make_directories(directory + "/a/c").ok());
  EXPECT_EQ(mode_of(directory + "/a"), 0755U);
  EXPECT_TRUE(disk.lock(directory + "/a").ok());
  EXPECT_EQ(mode_of(directory + "/a/.lock"), 0600U);
  ASSERT_EQ(::chmod((directory + "/a/.lock").c_str(), 0644), 0);
  EXPECT_TRUE(disk.lock(directory + "/a").ok());
  EXPECT_EQ(mode_of(directory + "/a/.lock"), 0600U);
  static_cast<void>(::umask(before));
  EXPECT_TRUE(disk.remove_all(directory).ok());
}

// A file that will be renamed is made anew: a symbolic link in its place is not followed, and neither is one
// in place of a lock. What a crash left there stops nobody. A user's own links for other files work.
TEST(PosixDisk, PlantedLinks) {
  PosixDisk disk;
  const std::string directory = ::testing::TempDir() + "gossamer_posix_planted_test";
  ASSERT_TRUE(disk.remove_all(directory).ok());
  ASSERT_TRUE(disk.make_directories(directory).ok());
  const std::string victim = directory + "/victim";
  const auto planted = [&](const std::string& name) {
    CHECK(replace_file(disk, victim, "whole").ok());
    CHECK(::symlink(victim.c_str(), (directory + name).c_str()) == 0);
  };
  for (const bool secret : {false, true}) {
    planted("/f.tmp");
    const auto replace =
        secret ? &replace_private_file
               : static_cast<Result<void> (*)(Disk&, const std::string&, std::string_view)>(&replace_file);
    ASSERT_TRUE(replace(disk, directory + "/f", "mine").ok());
    EXPECT_EQ(*read_text(disk, victim), "whole");
    EXPECT_EQ(*read_text(disk, directory + "/f"), "mine");
    ASSERT_TRUE(disk.open_writable(directory + "/f.tmp", WriteMode::kAppend).ok());  // as after a crash
    ASSERT_TRUE(replace(disk, directory + "/f", "again").ok());
    EXPECT_EQ(*read_text(disk, directory + "/f"), "again");
  }
  planted("/.lock");
  EXPECT_FALSE(disk.lock(directory).ok());
  planted("/link");
  ASSERT_TRUE(disk.open_writable(directory + "/link", WriteMode::kTruncate).ok());
  EXPECT_EQ(*read_text(disk, victim), "");
  EXPECT_TRUE(disk.remove_all(directory).ok());
}

// Another user who plants the link again and again, also between the removal and the opening, gets no byte.
TEST(PosixDisk, PlantedAllTheTime) {
  PosixDisk disk;
  const std::string directory = ::testing::TempDir() + "gossamer_posix_planting_test";
  ASSERT_TRUE(disk.remove_all(directory).ok());
  ASSERT_TRUE(disk.make_directories(directory).ok());
  const std::string victim = directory + "/victim";
  const std::string planted = directory + "/f.tmp";
  ASSERT_TRUE(replace_file(disk, victim, "whole").ok());
  std::atomic<bool> ended = false;
  std::thread planter([&] {
    while (!ended) static_cast<void>(::symlink(victim.c_str(), planted.c_str()));
  });
  std::size_t refused = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (refused < 100 && std::chrono::steady_clock::now() < end) {
    if (!disk.open_writable(planted, WriteMode::kTruncate).ok()) ++refused;
  }
  ended = true;
  planter.join();
  EXPECT_GT(refused, 0U) << "the link never came between the two";
  EXPECT_EQ(*read_text(disk, victim), "whole");
  EXPECT_TRUE(disk.remove_all(directory).ok());
}

// With a slash behind it a path leads to a folder alone.
TEST(PosixDisk, AFileIsNoFolder) {
  PosixDisk disk;
  const std::string directory = ::testing::TempDir() + "gossamer_posix_slash_test";
  ASSERT_TRUE(disk.make_directories(directory).ok());
  ASSERT_TRUE(replace_file(disk, directory + "/file", "x").ok());
  EXPECT_TRUE(*disk.exists(directory + "/"));
  EXPECT_TRUE(*disk.exists(directory + "/file"));
  EXPECT_FALSE(*disk.exists(directory + "/file/"));
  EXPECT_TRUE(disk.remove_all(directory).ok());
}

// remove_all() removes a symbolic link and leaves what it leads to.
TEST(PosixDisk, RemoveAllDoesNotFollowLinks) {
  PosixDisk disk;
  const std::string directory = ::testing::TempDir() + "gossamer_posix_link_test";
  ASSERT_TRUE(disk.remove_all(directory).ok());
  ASSERT_TRUE(disk.make_directories(directory + "/target/inner").ok());
  ASSERT_TRUE(disk.make_directories(directory + "/removed").ok());
  ASSERT_EQ(::symlink("../target", (directory + "/removed/link").c_str()), 0);
  ASSERT_TRUE(disk.remove_all(directory + "/removed").ok());
  EXPECT_FALSE(*disk.exists(directory + "/removed"));
  EXPECT_TRUE(*disk.exists(directory + "/target/inner"));
  EXPECT_TRUE(disk.remove_all(directory).ok());
}

}  // namespace
}  // namespace gossamer::host
