// SPDX-License-Identifier: Apache-2.0
#include "host/posix/sqlite_database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "host/system/descriptor.h"

namespace gossamer::host {
namespace {

// Readers and writers of a log do not wait for each other; what may wait is a switch of the journal's mode.
constexpr int kBusyMs = 2000;

// The system's error behind `code`, 0 if there is none.
int system_cause(sqlite3* database, int code) {
  switch (code & 0xff) {
    case SQLITE_FULL: return ENOSPC;
    case SQLITE_READONLY:
    case SQLITE_PERM: return EACCES;
    case SQLITE_CANTOPEN: return sqlite3_system_errno(database);
    case SQLITE_IOERR:
      // The clean-up after a failed sync hides its cause.
      return sqlite3_system_errno(database) != 0 ? sqlite3_system_errno(database) : EIO;
    default: return 0;
  }
}

Error sqlite_error(sqlite3* database, const std::string& path, std::string_view what) {
  const int code = sqlite3_extended_errcode(database);
  if (const int cause = system_cause(database, code); cause != 0) return system_error(path, what, cause);
  Error error{.where = path, .what = fmt::format("{}: {}", what, sqlite3_errmsg(database))};
  if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB) {
    error.kind = ErrorKind::kBadData;
    error.expected = "an SQLite database that is whole";
    error.fix = "choose another file, or put back a copy of this one";
  } else if ((code & 0xff) == SQLITE_BUSY) {
    error.expected = "no other program at work on the file";
    error.fix = "end the program that uses it";
  } else {
    error.fix = "see to the file and its disk, then try again";
  }
  return error;
}

// Makes an empty file that only its owner can read: the library would make one that the user's umask allows
// others to read. Its log gets the same mode. A file that is there stays as it is, and failures are for the
// library to tell.
void make_private(const std::string& path) {
  constexpr unsigned kDatabaseMode = S_IRUSR | S_IWUSR;
  static_cast<void>(open_descriptor(path, "", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, kDatabaseMode));
}

}  // namespace

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void SqliteStatement::bind_number(int parameter, std::int64_t value) {
  CHECK(sqlite3_bind_int64(statement_.get(), parameter, value) == SQLITE_OK, parameter);
}

void SqliteStatement::bind_text(int parameter, std::string_view text) {
  CHECK(sqlite3_bind_text64(statement_.get(), parameter, text.empty() ? "" : text.data(), text.size(),
                            SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK,
        parameter, text.size());
}

void SqliteStatement::bind_bytes(int parameter, std::string_view bytes) {
  // A null pointer would bind NULL.
  CHECK(sqlite3_bind_blob64(statement_.get(), parameter, bytes.empty() ? "" : bytes.data(), bytes.size(),
                            SQLITE_STATIC) == SQLITE_OK,
        parameter, bytes.size());
}

Result<bool> SqliteStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return sqlite_error(sqlite3_db_handle(statement_.get()), path_, "cannot read or write the database");
}

std::int64_t SqliteStatement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string SqliteStatement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

void SqliteStatement::reset() {
  // Repeats the error of the last step, which has been reported.
  static_cast<void>(sqlite3_reset(statement_.get()));
}

void SqliteDatabase::Close::operator()(sqlite3* database) const {
  // Statements are gone by now; an open transaction is rolled back.
  CHECK(sqlite3_close(database) == SQLITE_OK);
}

Result<SqliteDatabase> SqliteDatabase::open(const std::string& path, Access access) {
  const int flags =
      access == Access::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (access == Access::kCreate) make_private(path);
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  CHECK(raw != nullptr, code);
  SqliteDatabase database(raw, path);
  if (code != SQLITE_OK) return sqlite_error(raw, path, "cannot open the database");
  CHECK(sqlite3_busy_timeout(raw, kBusyMs) == SQLITE_OK);
  return database;
}

Result<SqliteStatement> SqliteDatabase::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql, -1, &statement, nullptr) != SQLITE_OK) {
    return sqlite_error(database_.get(), path_, "cannot read the database");
  }
  return SqliteStatement(statement, path_);
}

Result<void> SqliteDatabase::run(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return sqlite_error(database_.get(), path_, "cannot read or write the database");
}

Result<std::int64_t> SqliteDatabase::number(const char* sql) {
  auto statement = prepare(sql);
  if (!statement.ok()) return statement.error();
  const auto row = statement->step();
  if (!row.ok()) return row.error();
  return *row ? statement->number(0) : 0;
}

Result<std::string> SqliteDatabase::text(const char* sql) {
  auto statement = prepare(sql);
  if (!statement.ok()) return statement.error();
  const auto row = statement->step();
  if (!row.ok()) return row.error();
  return *row ? statement->bytes(0) : std::string();
}

bool SqliteDatabase::has_moved() const {
  int moved = 0;
  const int code = sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return code == SQLITE_OK && moved != 0;
}

}  // namespace gossamer::host
