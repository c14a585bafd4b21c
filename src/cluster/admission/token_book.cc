// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/token_book.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "host/api/files.h"
#include "json/read_json.h"

namespace gossamer::cluster {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kMaxFile = std::size_t{64} << 10;
constexpr std::string_view kSuffix = ".json";

Error unreadable(const std::string& path, std::string got) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "cannot read the token's record",
          .got = std::move(got),
          .expected = "what `gossamer token create` wrote",
          .fix = "remove the file, which revokes the token, and create a new one"};
}

// Throws json::exception where something is missing or of another type.
TokenRecord record_from(const json& object) {
  TokenRecord record{.id = object.at("id").get<std::string>(),
                     .secret_sha256 = object.at("secret_sha256").get<std::string>(),
                     .created = object.at("created").get<std::int64_t>(),
                     .expires = object.at("expires").get<std::int64_t>(),
                     .revoked = std::nullopt,
                     .note = object.at("note").get<std::string>()};
  const json& revoked = object.at("revoked");
  if (!revoked.is_null()) record.revoked = revoked.get<std::int64_t>();
  const auto uses = object.find("uses");  // a record of before has none
  if (uses != object.end() && !uses->is_null()) {
    const auto number = uses->get<std::int64_t>();
    record.uses = static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
  }
  return record;
}

Error refused(const std::string& id, std::string what, std::string got) {
  return {.kind = ErrorKind::kRefused,
          .where = "token " + id,
          .what = std::move(what),
          .got = std::move(got),
          .fix = "ask for a new one: `gossamer token create` beside the coordinator"};
}

}  // namespace

TokenRecord record_of(const Token& token, std::int64_t created, std::int64_t expires, std::string note) {
  return {.id = token.id,
          .secret_sha256 = to_hex(sha256(token.secret)),
          .created = created,
          .expires = expires,
          .revoked = std::nullopt,
          .note = std::move(note)};
}

Result<void> has_use_left(const TokenRecord& record, std::uint64_t used) {
  if (!record.uses || used < *record.uses) return {};
  return refused(record.id, "has no uses left",
                 fmt::format("it has let in {} node{}", used, used == 1 ? "" : "s"));
}

std::string to_text(const TokenRecord& record) {
  const json object{{"version", kVersion},
                    {"id", record.id},
                    {"secret_sha256", record.secret_sha256},
                    {"created", record.created},
                    {"expires", record.expires},
                    {"revoked", record.revoked.has_value() ? json(*record.revoked) : json(nullptr)},
                    {"note", record.note},
                    {"uses", record.uses.has_value() ? json(*record.uses) : json(nullptr)}};
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<TokenRecord> parse_token_record(std::string_view text, const std::string& where) {
  try {
    const json object = read_json<json>(text);
    if (object.is_discarded()) return unreadable(where, "no JSON, or JSON that is nested too deeply");
    if (object.at("version") != kVersion) return unreadable(where, "another version");
    TokenRecord record = record_from(object);
    if (!is_hex(record.id, kTokenIdBytes)) return unreadable(where, "an id that is none");
    if (!is_hex(record.secret_sha256, sizeof(Sha256)))
      return unreadable(where, "a secret_sha256 that is none");
    return record;
  } catch (const json::exception& error) {
    return unreadable(where, error.what());
  }
}

std::string utc_text(std::int64_t seconds) {
  // The library's calendar does not reach later dates.
  constexpr std::int64_t kFar = 250'000'000'000;
  if (seconds < 0 || seconds > kFar) return fmt::format("{} s after 1970", seconds);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

Result<TokenRecord> TokenBook::read(const std::string& id) {
  const std::string path = path_of(id);
  const auto text = host::read_text(disk_, path, kMaxFile);
  if (!text.ok()) return text.error();
  auto record = parse_token_record(*text, path);
  if (record.ok() && record->id != id) return unreadable(path, "the record of another token");
  return record;
}

Result<void> TokenBook::write(const TokenRecord& record) {
  return host::replace_file(disk_, path_of(record.id), to_text(record));
}

Result<void> TokenBook::make_directory() {
  if (auto made = disk_.make_directories(directory_); !made.ok()) return made;
  return disk_.sync_directory(host::parent(directory_));
}

Result<void> TokenBook::add(const TokenRecord& record) {
  CHECK(is_hex(record.id, kTokenIdBytes) && is_hex(record.secret_sha256, sizeof(Sha256)));
  if (auto made = make_directory(); !made.ok()) return made;
  const auto there = disk_.exists(path_of(record.id));
  if (!there.ok()) return there.error();
  if (*there) return Error{.where = path_of(record.id), .what = "a token of this id exists"};
  return write(record);
}

Result<TokenBook::List> TokenBook::list() {
  List all;
  const auto exists = disk_.exists(directory_);
  if (!exists.ok()) return exists.error();
  if (!*exists) return all;
  const auto names = disk_.list(directory_);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    if (!name.ends_with(kSuffix)) continue;  // a crash may leave a temporary file of a replacement
    const std::string id = name.substr(0, name.size() - kSuffix.size());
    if (!is_hex(id, kTokenIdBytes)) continue;
    auto record = read(id);
    if (record.ok()) {
      all.records.push_back(std::move(*record));
    } else {
      all.unreadable.push_back(record.error());
    }
  }
  std::ranges::sort(all.records, [](const TokenRecord& a, const TokenRecord& b) {
    return std::tie(a.created, a.id) < std::tie(b.created, b.id);
  });
  return all;
}

Result<TokenRecord> TokenBook::revoke(const std::string& id, std::int64_t now) {
  const auto there = is_hex(id, kTokenIdBytes) ? disk_.exists(path_of(id)) : Result<bool>(false);
  if (!there.ok()) return there.error();
  if (!*there) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = directory_,
                 .what = "no such token",
                 .got = "'" + id + "'",
                 .expected = "the id of one that `gossamer token list` shows"};
  }
  auto record = read(id);
  if (!record.ok() || record->revoked.has_value()) return record;
  record->revoked = now;
  if (auto written = write(*record); !written.ok()) return written.error();
  return record;
}

Result<TokenRecord> TokenBook::merge(const TokenRecord& other) {
  CHECK(is_hex(other.id, kTokenIdBytes) && is_hex(other.secret_sha256, sizeof(Sha256)));
  if (auto made = make_directory(); !made.ok()) return made.error();
  const auto there = disk_.exists(path_of(other.id));
  if (!there.ok()) return there.error();
  const auto own = *there ? read(other.id) : Result<TokenRecord>(other);
  if (!own.ok() && own.error().kind != ErrorKind::kBadData) return own.error();
  // A file that cannot be read is worth less than what another has.
  TokenRecord merged = own.ok() ? *own : other;
  if (other.revoked) merged.revoked = std::min(merged.revoked.value_or(*other.revoked), *other.revoked);
  if (*there && own.ok() && merged == *own) return merged;
  if (auto written = write(merged); !written.ok()) return written.error();
  return merged;
}

Result<TokenRecord> TokenBook::check(const std::string& id, std::string_view secret, std::int64_t now) {
  constexpr const char* kUnknown = "is not known to this run, or its secret is wrong";
  if (!is_hex(id, kTokenIdBytes)) return refused("(malformed)", kUnknown, "");
  const auto there = disk_.exists(path_of(id));
  if (!there.ok()) return there.error();
  if (!*there) return refused(id, kUnknown, "");
  auto record = read(id);
  // The file is at fault and not the stranger, so the stranger learns no details.
  if (!record.ok())
    return Error{.where = "token " + id, .what = "cannot be checked: its record is unreadable"};
  if (!equal_secrets(to_hex(sha256(secret)), record->secret_sha256)) return refused(id, kUnknown, "");
  if (record->revoked.has_value())
    return refused(id, "was revoked", "revoked at " + utc_text(*record->revoked));
  if (now >= record->expires) return refused(id, "has expired", "expired at " + utc_text(record->expires));
  return record;
}

}  // namespace gossamer::cluster
