// SPDX-License-Identifier: Apache-2.0
//
// One connection to an SQLite file and its prepared statements, with our errors. kBadData: the file is
// damaged or no database. kFailed: the rest. `where` is the path; the cause is the system's where there is
// one. Internal to host/posix. Owner: one; a statement must not outlive its database. Thread rule: one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gossamer::host {

class SqliteStatement {
 public:
  SqliteStatement(sqlite3_stmt* statement, std::string path)
      : statement_(statement), path_(std::move(path)) {}

  // Parameters are numbered from 1. Bytes are borrowed until the next reset().
  void bind_number(int parameter, std::int64_t value);
  void bind_text(int parameter, std::string_view text);
  void bind_bytes(int parameter, std::string_view bytes);
  // True: there is a row; its columns (from 0) can be read until the next call. False: done.
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] std::string bytes(int column) const;  // of text or of a blob
  void reset();

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::string path_;
};

class SqliteDatabase {
 public:
  enum class Access { kReadOnly, kCreate };
  // Does not look into the file yet.
  [[nodiscard]] static Result<SqliteDatabase> open(const std::string& path, Access access);

  [[nodiscard]] Result<SqliteStatement> prepare(const char* sql);
  // Runs statements without parameters and drops their rows.
  [[nodiscard]] Result<void> run(const char* sql);
  // The first column of the only row.
  [[nodiscard]] Result<std::int64_t> number(const char* sql);
  [[nodiscard]] Result<std::string> text(const char* sql);
  [[nodiscard]] const std::string& path() const { return path_; }
  // Whether the path no longer leads to the file that was opened.
  [[nodiscard]] bool has_moved() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  SqliteDatabase(sqlite3* database, std::string path) : database_(database), path_(std::move(path)) {}

  std::unique_ptr<sqlite3, Close> database_;
  std::string path_;
};

}  // namespace gossamer::host
