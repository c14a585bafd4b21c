// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: the value, or why there is none. Every function that can fail for a reason outside our own code
// returns one; the compiler refuses a result that is dropped. Our own bugs are not results: see base/check.h.
//
//   Result<Model> model = load_model(disk, dir);
//   if (!model.ok()) return model.error();
//   use(*model);
//
// Thread rule: plain values, no sharing.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace gossamer {

// What the caller should do about an error; the command line maps it to the exit status of the same number.
enum class ErrorKind {
  kFailed = 1,   // the world: disk full, file gone, out of memory. Report and stop, nothing lost.
  kUsage = 2,    // the user's words or configuration. Report and stop before any work.
  kBadData = 3,  // the user's data. Report file, line and column; skippable where --skip-bad says so.
  kRefused = 4,  // token, version or epoch. Report and stop; trying again does not help.
};

// The five parts of a message a person can act on. `what` is required, the others may be empty.
//   {.where = "train.txt:17:5", .what = "cannot read a feature", .got = "'x:1'",
//    .expected = "INDEX:VALUE with INDEX in 0..4999", .fix = "mend the line or use --skip-bad N"}
struct Error {
  ErrorKind kind = ErrorKind::kFailed;
  std::string where = {};     // on what: FILE:LINE:COLUMN, a key, a peer
  std::string what = {};      // what failed
  std::string got = {};       // what was found
  std::string expected = {};  // what would have been right
  std::string fix = {};       // what to do

  // One line: "where: what: got ...; expected ...; fix".
  [[nodiscard]] std::string message() const;
};

// Names a kind in logs and JSON: "failed", "usage", "bad-data", "refused".
[[nodiscard]] const char* name(ErrorKind kind);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }

  // Requires ok().
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(value()); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  // Requires !ok().
  [[nodiscard]] const Error& error() const {
    CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  T& value() {
    CHECK(ok(), error_message());
    return std::get<0>(state_);
  }
  [[nodiscard]] const T& value() const {
    CHECK(ok(), error_message());
    return std::get<0>(state_);
  }
  [[nodiscard]] std::string error_message() const {
    return ok() ? std::string() : std::get<1>(state_).message();
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  // Requires !ok().
  [[nodiscard]] const Error& error() const {
    CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace gossamer
