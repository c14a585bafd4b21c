// SPDX-License-Identifier: Apache-2.0
#include "host/posix/sqlite_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace gossamer::host {
namespace {

// "GSMR": marks the file as ours, also for file(1).
constexpr std::int64_t kApplication = 0x47534D52;
constexpr std::int64_t kVersion = 1;
constexpr const char* kCreate =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE lead(one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL,"
    "                  name TEXT NOT NULL, address TEXT NOT NULL) STRICT;"
    "CREATE TABLE entries(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT;"
    "INSERT INTO lead VALUES (1, 0, '', '');"
    "PRAGMA application_id = 0x47534D52;"
    "PRAGMA user_version = 1;"
    "COMMIT";

// The lock of an open file description. It belongs to one descriptor, not to the process. So two handles of
// one process keep each other out too, and closing another descriptor does not end it.
struct flock whole_file(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

Error not_ours(const std::string& path, std::string got) {
  return Error{.kind = ErrorKind::kRefused,
               .where = path,
               .what = "this is not a coordinator's file that this program can read",
               .got = std::move(got),
               .expected = fmt::format("a coordinator's file of version {}, or none", kVersion),
               .fix = "choose another file, or the program that wrote this one"};
}

// Checks that the file is ours, before anything is changed in it. True: it is new and empty.
Result<bool> is_new(SqliteDatabase& database, const std::string& path) {
  const auto application = database.number("PRAGMA application_id");
  if (!application.ok()) return application.error();
  const auto version = database.number("PRAGMA user_version");
  if (!version.ok()) return version.error();
  const auto tables = database.number("SELECT count(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.error();
  if (*application == 0 && *version == 0 && *tables == 0) return true;
  if (*application != kApplication) {
    return not_ours(path, fmt::format("a database of another program (application id {})", *application));
  }
  if (*version != kVersion) return not_ours(path, fmt::format("version {}", *version));
  return false;
}

Result<void> set_durability(SqliteDatabase& database, const std::string& path) {
  const auto mode = database.text("PRAGMA journal_mode = WAL");
  if (!mode.ok()) return mode.error();
  if (*mode != "wal") {
    return Error{.where = path,
                 .what = "the database cannot keep a write-ahead log here",
                 .got = fmt::format("journal mode '{}'", *mode),
                 .expected = "a local disk with shared memory",
                 .fix = "choose a directory on a local disk"};
  }
  return database.run("PRAGMA synchronous = FULL");
}

Result<void> check_whole(SqliteDatabase& database, const std::string& path) {
  const auto found = database.text("PRAGMA quick_check(1)");
  if (!found.ok()) return found.error();
  if (*found == "ok") return {};
  return Error{.kind = ErrorKind::kBadData,
               .where = path,
               .what = "the database is damaged",
               .got = *found,
               .expected = "an SQLite database that is whole",
               .fix = "put back a copy of the file, or choose another one"};
}

// The database at `path`, checked, made where there is none.
Result<SqliteDatabase> open_ours(const std::string& path) {
  auto database = SqliteDatabase::open(path, SqliteDatabase::Access::kCreate);
  if (!database.ok()) return database.error();
  const auto fresh = is_new(*database, path);
  if (!fresh.ok()) return fresh.error();
  if (auto done = set_durability(*database, path); !done.ok()) return done.error();
  if (*fresh) {
    if (auto done = database->run(kCreate); !done.ok()) return done.error();
  }
  if (auto done = check_whole(*database, path); !done.ok()) return done.error();
  return database;
}

Result<Generation> raise_generation(SqliteDatabase& database, const Candidate& self) {
  auto update = database.prepare(
      "UPDATE lead SET generation = generation + 1, name = ?1, address = ?2 RETURNING generation");
  if (!update.ok()) return update.error();
  update->bind_text(1, self.name);
  update->bind_text(2, self.address);
  const auto row = update->step();
  if (!row.ok()) return row.error();
  if (!*row) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = database.path(),
                 .what = "the coordinator's file has lost the row that says which coordinator leads",
                 .got = "an empty table 'lead'",
                 .expected = "one row",
                 .fix = "restore the file from a copy"};
  }
  const Generation generation(static_cast<std::uint64_t>(update->number(0)));
  // Alone in its transaction: the last step commits.
  const auto done = update->step();
  if (!done.ok()) return done.error();
  return generation;
}

Result<std::optional<LeaderRecord>> read_leader(SqliteDatabase& database) {
  using Found = std::optional<LeaderRecord>;
  // The leader may have made no table yet.
  const auto tables = database.number("SELECT count(*) FROM sqlite_schema WHERE name = 'lead'");
  if (!tables.ok()) return tables.error();
  if (*tables == 0) return Found();
  auto query = database.prepare("SELECT generation, name, address FROM lead WHERE generation > 0");
  if (!query.ok()) return query.error();
  const auto row = query->step();
  if (!row.ok()) return row.error();
  if (!*row) return Found();
  return Found({.candidate = {.name = query->bytes(1), .address = query->bytes(2)},
                .generation = Generation(static_cast<std::uint64_t>(query->number(0)))});
}

}  // namespace

Result<std::optional<Descriptor>> SqliteStore::take_lock() const {
  constexpr std::string_view kWhat = "cannot lock the coordinator's file";
  constexpr unsigned kOwnersLock = S_IRUSR | S_IWUSR;  // a user that can open the file can lock it
  auto fd = open_descriptor(lock_path(), kWhat, O_RDWR | O_CREAT | O_NOFOLLOW, kOwnersLock);
  if (!fd.ok()) return fd.error();
  static_cast<void>(::fchmod(fd->get(), kOwnersLock));  // an older version made it open to all
  struct flock lock = whole_file(F_WRLCK);
  while (::fcntl(fd->get(), F_OFD_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES) return std::optional<Descriptor>();
    if (errno != EINTR) return system_error(lock_path(), kWhat, errno);
  }
  return std::optional<Descriptor>(std::move(*fd));
}

Result<std::optional<Generation>> SqliteStore::campaign(const Candidate& self) {
  CHECK(!database_);
  auto lock = take_lock();
  if (!lock.ok()) return lock.error();
  if (!*lock) return std::optional<Generation>();
  auto database = open_ours(path_);
  if (!database.ok()) return database.error();
  const auto generation = raise_generation(*database, self);
  if (!generation.ok()) return generation.error();
  lock_.emplace(std::move(**lock));
  database_.emplace(std::move(*database));
  generation_ = *generation;
  return std::optional<Generation>(*generation);
}

Result<void> SqliteStore::keep() {
  if (auto led = check_lead(); !led.ok()) return led;
  return check_generation();
}

Result<void> SqliteStore::resign() {
  step_down();
  return {};
}

Result<std::optional<LeaderRecord>> SqliteStore::leader() {
  constexpr std::string_view kWhat = "cannot tell who leads";
  using Nobody = std::optional<LeaderRecord>;
  const int fd = ::open(lock_path().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return Nobody();
  if (fd < 0) return system_error(lock_path(), kWhat, errno);
  const Descriptor probe(fd);
  struct flock lock = whole_file(F_RDLCK);
  if (::fcntl(probe.get(), F_OFD_GETLK, &lock) != 0) return system_error(lock_path(), kWhat, errno);
  if (lock.l_type == F_UNLCK) return Nobody();
  // The leader may hold the lock and have made no file yet.
  if (::access(path_.c_str(), F_OK) != 0) return Nobody();
  auto database = SqliteDatabase::open(path_, SqliteDatabase::Access::kReadOnly);
  if (!database.ok()) return database.error();
  return read_leader(*database);
}

Result<std::vector<Entry>> SqliteStore::load() {
  if (auto led = keep(); !led.ok()) return led.error();
  // Blobs are ordered by their bytes.
  auto query = database_->prepare("SELECT key, value FROM entries ORDER BY key");
  if (!query.ok()) return query.error();
  std::vector<Entry> entries;
  for (;;) {
    const auto row = query->step();
    if (!row.ok()) return row.error();
    if (!*row) return entries;
    entries.push_back({.key = query->bytes(0), .value = query->bytes(1)});
  }
}

Result<void> SqliteStore::commit(std::span<const Change> changes) {
  if (auto within = check_limits(changes); !within.ok()) return within;
  if (auto led = check_lead(); !led.ok()) return led;
  if (auto begun = database_->run("BEGIN IMMEDIATE"); !begun.ok()) return begun;
  Result<void> done = check_generation();
  if (!database_) return done;  // closed, which rolls back
  if (done.ok()) done = write(changes);
  if (done.ok()) done = database_->run("COMMIT");
  // Fails where the error has rolled back already; the first error is the one to report.
  if (!done.ok()) static_cast<void>(database_->run("ROLLBACK").ok());
  return done;
}

Result<void> SqliteStore::check_lead() const {
  if (!database_) return not_leading(path_);
  if (!database_->has_moved()) return {};
  return Error{.where = path_,
               .what = "the coordinator's file is no longer in its place",
               .got = "another file or none",
               .expected = "the file that was opened",
               .fix = "stop the coordinator and put its file back"};
}

Result<void> SqliteStore::check_generation() {
  const auto now = database_->number("SELECT generation FROM lead");
  if (!now.ok()) return now.error();
  if (static_cast<std::uint64_t>(*now) == generation_.value) return {};
  step_down();
  return not_leading(path_);
}

Result<void> SqliteStore::write(std::span<const Change> changes) {
  auto put = database_->prepare(
      "INSERT INTO entries VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value");
  if (!put.ok()) return put.error();
  auto remove = database_->prepare("DELETE FROM entries WHERE key = ?1");
  if (!remove.ok()) return remove.error();
  for (const Change& change : changes) {
    SqliteStatement& statement = change.value ? *put : *remove;
    statement.bind_bytes(1, change.key);
    if (change.value) statement.bind_bytes(2, *change.value);
    const auto done = statement.step();
    statement.reset();
    if (!done.ok()) return done.error();
  }
  return {};
}

void SqliteStore::step_down() {
  database_.reset();
  lock_.reset();
}

}  // namespace gossamer::host
