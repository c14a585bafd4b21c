// SPDX-License-Identifier: Apache-2.0
//
// TokenBook: the tokens of one run, as files below its directory: docs/protocols/admission.md, "Token". Each
// call reads what is there now, so that `gossamer token revoke` and a running coordinator need not speak.
//
// Times are seconds since 1970-01-01 UTC. Thread rule: one thread; several processes may use one directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/admission/token.h"
#include "host/api/disk.h"

namespace gossamer::cluster {

struct TokenRecord {
  std::string id;             // 16 hexadecimal digits
  std::string secret_sha256;  // 64 hexadecimal digits
  std::int64_t created = 0;
  std::int64_t expires = 0;  // the token is refused from then on
  std::optional<std::int64_t> revoked;
  std::string note;                        // for people
  std::optional<std::uint64_t> uses = {};  // nodes that it may let in; nothing: any number

  bool operator==(const TokenRecord&) const = default;
};

// The record of a token. It is not enough to make the token, as it has only a hash of the secret.
[[nodiscard]] TokenRecord record_of(const Token& token, std::int64_t created, std::int64_t expires,
                                    std::string note);

// Whether the token may let in one node more, after `used`. kRefused if not.
[[nodiscard]] Result<void> has_use_left(const TokenRecord& record, std::uint64_t used);

// The record as text, for its own file and for a store that coordinators share.
[[nodiscard]] std::string to_text(const TokenRecord& record);
// The error is kBadData, with `where`, for a text that is no record.
[[nodiscard]] Result<TokenRecord> parse_token_record(std::string_view text, const std::string& where);

// "2026-01-31 23:59:59 UTC".
[[nodiscard]] std::string utc_text(std::int64_t seconds);

class TokenBook {
 public:
  // Files lie in `directory`, inside the run directory. The first add() makes it. The disk outlives the book.
  TokenBook(host::Disk& disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}

  // Adds a record, durable when it returns. Requires an id and a hash of good hexadecimal digits. Refuses an
  // id that is there already.
  [[nodiscard]] Result<void> add(const TokenRecord& record);

  struct List {
    std::vector<TokenRecord> records;  // oldest first
    std::vector<Error> unreadable;     // files that are no records, by path
  };
  [[nodiscard]] Result<List> list();

  // Revokes a token: from now on check() refuses it. Durable when it returns. A second call keeps the first
  // time. An unknown id is kUsage.
  [[nodiscard]] Result<TokenRecord> revoke(const std::string& id, std::int64_t now);

  // Takes up a record from another place. The token may be new here. A token revoked there or here is
  // revoked, at the earlier time, and all else stays as it is here. A record that cannot be read here is
  // replaced. Returns what is here now; durable.
  [[nodiscard]] Result<TokenRecord> merge(const TokenRecord& other);

  // Checks whether a stranger with this id and secret may enrol now. Each reason against it is kRefused, in
  // words of its own; a record that cannot be read is kFailed. `id` and `secret` may be any bytes that a
  // stranger sends.
  [[nodiscard]] Result<TokenRecord> check(const std::string& id, std::string_view secret, std::int64_t now);

 private:
  [[nodiscard]] std::string path_of(const std::string& id) const { return directory_ + "/" + id + ".json"; }
  [[nodiscard]] Result<void> make_directory();
  [[nodiscard]] Result<TokenRecord> read(const std::string& id);
  [[nodiscard]] Result<void> write(const TokenRecord& record);

  host::Disk& disk_;
  std::string directory_;
};

}  // namespace gossamer::cluster
