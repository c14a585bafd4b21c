// SPDX-License-Identifier: Apache-2.0
//
// What only a file has: processes that are killed, syncs, files of others, damage, full disks. The
// interface's promises: tests/conformance.
#include "host/posix/sqlite_store.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>

#include "base/rng.h"
#include "host/api/files.h"
#include "host/posix/disk.h"
#include "host/posix/test_store_content.h"

namespace {

// All syncs of this process come through here, the library's too. They are counted, and fail when told to.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): a replaced call's arguments are fixed
int syncs = 0;
bool syncs_fail = false;
ino_t synced = 0;  // what was synced last
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

int counted_sync(const char* name, int fd) {
  ++syncs;
  struct stat info{};
  if (::fstat(fd, &info) == 0) synced = info.st_ino;
  if (syncs_fail) {
    errno = EIO;
    return -1;
  }
  return reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, name))(fd);
}

}  // namespace

extern "C" int fdatasync(int fd) { return counted_sync("fdatasync", fd); }
extern "C" int fsync(int fd) { return counted_sync("fsync", fd); }

namespace gossamer::host {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Candidate kSelf = {.name = "me", .address = "127.0.0.1:7070"};

Generation lead(Store& store) {
  const auto won = store.campaign(kSelf);
  EXPECT_TRUE(won.ok()) << won.error().message();
  EXPECT_TRUE(won.ok() && *won);
  return won.ok() && *won ? **won : Generation();
}

Result<void> put(Store& store, const std::string& key, const std::string& value) {
  return store.commit(std::vector<Change>{{.key = key, .value = value}});
}

class SqliteStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fmt::format("{}gossamer_sqlite_{}", ::testing::TempDir(), ::getpid());
    ASSERT_TRUE(disk_.remove_all(directory_).ok());
    ASSERT_TRUE(disk_.make_directories(directory_).ok());
    path_ = directory_ + "/state.db";
  }
  void TearDown() override { EXPECT_TRUE(disk_.remove_all(directory_).ok()); }

  // Does what another program might do with the file.
  void run_sql(const char* sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    ASSERT_EQ(sqlite3_close(database), SQLITE_OK);
  }
  // The campaign is refused with these words and leaves the file as it was, and no lead behind.
  void expect_refused(ErrorKind kind, const std::string& part) {
    const auto before = read_text(disk_, path_);
    ASSERT_TRUE(before.ok());
    SqliteStore store(path_);
    for (int i = 0; i < 2; ++i) {
      const auto refused = store.campaign(kSelf);
      ASSERT_FALSE(refused.ok()) << part;
      EXPECT_EQ(refused.error().kind, kind) << refused.error().message();
      EXPECT_EQ(refused.error().where, path_);
      EXPECT_THAT(refused.error().message(), HasSubstr(part));
      EXPECT_THAT(refused.error().fix, Not(IsEmpty()));
    }
    EXPECT_EQ(*read_text(disk_, path_), *before) << part;
  }

  PosixDisk disk_;
  std::string directory_;
  std::string path_;
};

// Nobody but its owner can read a new store, its log and its shared memory, whatever the user's umask.
TEST_F(SqliteStoreTest, IsForItsOwnerAlone) {
  const mode_t before = ::umask(0);
  {
    SqliteStore store(path_);
    static_cast<void>(lead(store));
    ASSERT_TRUE(put(store, "key", "value").ok());
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
      struct stat facts{};
      ASSERT_EQ(::stat((path_ + suffix).c_str(), &facts), 0) << suffix;
      EXPECT_EQ(facts.st_mode & 0777U, 0600U) << suffix;
    }
  }
  ::umask(before);
}

// Whatever moment a process is killed at (SIGKILL), every commit that was answered is there, a later one
// whole or not at all.
TEST_F(SqliteStoreTest, KillLosesNothingAnswered) {
  Rng rng(1, Purpose::kTest);
  Generation last;
  std::uint64_t count = 0;  // commits that the file must have
  for (int round = 0; round < 30; ++round) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the test
      SqliteStore store(path_);
      bool good = *store.campaign(kSelf) != std::nullopt;
      for (std::uint64_t i = count + 1; good; ++i) {
        const std::string value = std::to_string(i);
        const std::vector<Change> batch = {{.key = "a", .value = value},
                                           {.key = "filler", .value = std::string(9000, 'f')},
                                           {.key = "b", .value = value}};
        good = store.commit(batch).ok() && ::write(pipe[1], "y", 1) == 1;
      }
      ::_exit(1);
    }
    ::close(pipe[1]);
    char byte = 0;
    for (std::uint64_t wanted = 1 + rng.below(20); wanted > 0 && ::read(pipe[0], &byte, 1) == 1; --wanted)
      ++count;
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    while (::read(pipe[0], &byte, 1) == 1) ++count;
    ::close(pipe[0]);
    SqliteStore store(path_);
    const Generation generation = lead(store);
    EXPECT_EQ(generation, Generation(last.value + 2)) << round;  // the child's, and this one
    last = generation;
    const Content found = content(store);
    ASSERT_EQ(found.at("a"), found.at("b")) << round;
    EXPECT_THAT(found.at("a"), AnyOf(Eq(std::to_string(count)), Eq(std::to_string(count + 1)))) << round;
    count = std::stoull(found.at("a"));
  }
}

// A second process is told at once that there is a leader, and by which name, and takes over as soon as it is
// gone.
TEST_F(SqliteStoreTest, AnotherProcessHoldsTheLock) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    SqliteStore store(path_);
    const bool led = *store.campaign({.name = "child", .address = "host:1"}) != std::nullopt;
    static_cast<void>(::write(pipe[1], led ? "y" : "n", 1));
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  SqliteStore store(path_);
  EXPECT_FALSE(*store.campaign(kSelf));
  const auto leader = store.leader();
  EXPECT_TRUE(leader.ok() && *leader && (*leader)->candidate.name == "child");
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (const int end : pipe) ::close(end);
  EXPECT_FALSE(*store.leader());
  EXPECT_EQ(lead(store), Generation(2));
}

// A commit costs one sync, also of many changes; a campaign at most a few. (A checkpoint of the log, every
// 1,000 pages, costs two more.)
TEST_F(SqliteStoreTest, OneSyncPerCommit) {
  SqliteStore store(path_);
  syncs = 0;
  static_cast<void>(lead(store));
  EXPECT_GE(syncs, 2);
  EXPECT_LE(syncs, 12);
  for (const std::size_t changes : {1U, 100U}) {
    std::vector<Change> batch(changes, {.key = "", .value = "v"});
    for (std::size_t i = 0; i < changes; ++i) batch[i].key = fmt::format("k{}", i);
    for (int i = 0; i < 3; ++i) {
      batch[0].value = fmt::format("{}", i);
      syncs = 0;
      ASSERT_TRUE(store.commit(batch).ok());
      EXPECT_EQ(syncs, 1) << changes;
    }
  }
  syncs = 0;
  ASSERT_TRUE(store.keep().ok());
  ASSERT_TRUE(store.load().ok());
  EXPECT_EQ(syncs, 0);
}

// Claim: a sync of a file or of a directory reaches the system as one sync of just that, and tells that it
// failed.
TEST_F(SqliteStoreTest, SyncsOfTheDiskReachTheSystem) {
  const std::string path = directory_ + "/file";
  auto file = disk_.open_writable(path, WriteMode::kTruncate);
  ASSERT_TRUE(file.ok());
  const auto expect_synced = [](const std::string& what, const std::function<Result<void>()>& sync) {
    struct stat info{};
    ASSERT_EQ(::stat(what.c_str(), &info), 0);
    syncs = 0;
    synced = 0;
    EXPECT_TRUE(sync().ok()) << what;
    EXPECT_EQ(syncs, 1) << what;
    EXPECT_EQ(synced, info.st_ino) << what;
    syncs_fail = true;
    EXPECT_FALSE(sync().ok()) << what;
    syncs_fail = false;
  };
  expect_synced(path, [&] { return (*file)->sync(); });
  expect_synced(directory_, [this] { return disk_.sync_directory(directory_); });
}

// A commit that cannot be synced is no commit; the next one works, and what was there stays.
TEST_F(SqliteStoreTest, FailingSync) {
  SqliteStore store(path_);
  static_cast<void>(lead(store));
  ASSERT_TRUE(put(store, "x", "old").ok());
  syncs_fail = true;
  const auto failed = put(store, "x", "new");
  syncs_fail = false;
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(failed.error().message(),
              HasSubstr(path_ + ": cannot read or write the database: Input/output error"));
  EXPECT_EQ(content(store), (Content{{"x", "old"}}));
  EXPECT_TRUE(put(store, "x", "newer").ok());
  EXPECT_EQ(content(store), (Content{{"x", "newer"}}));
}

// What is no database, a database of another program, and one of a newer version are refused untouched.
TEST_F(SqliteStoreTest, ForeignFiles) {
  ASSERT_TRUE(replace_file(disk_, path_, std::string(5000, 'g')).ok());
  expect_refused(ErrorKind::kBadData, "file is not a database");
  ASSERT_TRUE(disk_.remove_all(path_).ok());
  run_sql("CREATE TABLE cookies(name TEXT)");
  expect_refused(ErrorKind::kRefused, "a database of another program (application id 0)");
  run_sql("PRAGMA application_id = 0x12345678");
  expect_refused(ErrorKind::kRefused, "a database of another program (application id 305419896)");
  ASSERT_TRUE(disk_.remove_all(path_).ok());
  {
    SqliteStore store(path_);
    static_cast<void>(lead(store));
  }
  run_sql("PRAGMA user_version = 2; PRAGMA wal_checkpoint(TRUNCATE)");
  expect_refused(ErrorKind::kRefused, "got version 2; expected a coordinator's file of version 1");
}

// Claim: a file without the row of the lead is reported, and ends no process.
TEST_F(SqliteStoreTest, NoRowOfTheLead) {
  {
    SqliteStore store(path_);
    static_cast<void>(lead(store));
  }
  run_sql("DELETE FROM lead");
  expect_refused(ErrorKind::kBadData, "an empty table 'lead'");
}

// A file with a damaged page is reported as such.
TEST_F(SqliteStoreTest, DamagedFile) {
  {
    SqliteStore store(path_);
    static_cast<void>(lead(store));
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(put(store, fmt::format("k{}", i), std::string(500, 'v')).ok());
  }
  run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
  constexpr std::size_t kPageBytes = 4096;
  std::string bytes = *read_text(disk_, path_);
  ASSERT_GT(bytes.size(), 5 * kPageBytes);
  for (std::size_t i = 3 * kPageBytes; i < bytes.size(); ++i) bytes[i] = '\x5a';
  ASSERT_TRUE(replace_file(disk_, path_, bytes).ok());
  SqliteStore store(path_);
  const auto refused = store.campaign(kSelf);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData) << refused.error().message();
  EXPECT_THAT(refused.error().message(), HasSubstr("an SQLite database that is whole"));
}

// Where the file cannot be, the message names the path and the cause.
TEST_F(SqliteStoreTest, BadPlaces) {
  const std::string missing = directory_ + "/missing/state.db";
  const auto nowhere = SqliteStore(missing).campaign(kSelf);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().where, missing + ".lock");
  EXPECT_THAT(nowhere.error().what, HasSubstr("No such file or directory"));
  ASSERT_TRUE(disk_.make_directories(path_).ok());
  const auto folder = SqliteStore(path_).campaign(kSelf);
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().where, path_);
}

// A file that was moved away under its leader takes no more commits: its successor would not find them.
TEST_F(SqliteStoreTest, MovedFile) {
  SqliteStore store(path_);
  static_cast<void>(lead(store));
  ASSERT_TRUE(put(store, "x", "1").ok());
  ASSERT_TRUE(disk_.rename(path_, path_ + ".away").ok());
  for (const auto& failed : {put(store, "x", "2"), store.keep()}) {
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(failed.error().message(), HasSubstr("no longer in its place"));
  }
  ASSERT_TRUE(disk_.rename(path_ + ".away", path_).ok());
  EXPECT_TRUE(put(store, "x", "2").ok());
}

// Mounts a small file system that only this process sees; false without the rights.
bool mount_small(const std::string& directory) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=256k") == 0;
}

// On a full disk a commit fails with the cause, leaves the old state, and works again once there is room. A
// disk that can only be read is named too.
TEST_F(SqliteStoreTest, FullAndReadOnlyDisk) {
  if (!mount_small(directory_)) GTEST_SKIP() << "needs the right to mount a file system";
  {
    SqliteStore store(path_);
    static_cast<void>(lead(store));
    ASSERT_TRUE(put(store, "x", "old").ok());
    ASSERT_TRUE(replace_file(disk_, directory_ + "/filler", std::string(30000, 'f')).ok());
    const std::vector<Change> batch = {{.key = "x", .value = "new"},
                                       {.key = "big", .value = std::string(200000, 'b')}};
    for (int i = 0; i < 2; ++i) {
      const auto failed = store.commit(batch);
      ASSERT_FALSE(failed.ok());
      EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
      EXPECT_EQ(failed.error().where, path_);
      EXPECT_THAT(failed.error().message(), HasSubstr("No space left on device; expected room on the disk"));
      EXPECT_EQ(content(store), (Content{{"x", "old"}}));
    }
    ASSERT_TRUE(put(store, "x", "new").ok());
    EXPECT_EQ(content(store), (Content{{"x", "new"}}));
  }
  ASSERT_EQ(::mount("none", directory_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  const auto refused = SqliteStore(path_).campaign(kSelf);
  ASSERT_EQ(::umount2(directory_.c_str(), MNT_DETACH), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("Read-only file system"));
}

}  // namespace
}  // namespace gossamer::host
