// SPDX-License-Identifier: Apache-2.0
#include "host/api/store.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace gossamer::host {
namespace {

Error beyond_limit(std::string where, std::string_view what, std::size_t got, std::string expected) {
  return Error{.kind = ErrorKind::kBadData,
               .where = std::move(where),
               .what = std::string(what),
               .got = std::to_string(got),
               .expected = std::move(expected),
               .fix = "cut what is stored into smaller pieces"};
}

}  // namespace

Result<void> check_limits(std::span<const Change> changes) {
  if (changes.size() > kMaxChanges) {
    return beyond_limit("a commit", "too many changes", changes.size(),
                        fmt::format("at most {}", kMaxChanges));
  }
  std::size_t bytes = 0;
  for (const Change& change : changes) {
    const std::size_t value_bytes = change.value ? change.value->size() : 0;
    const std::string where = "key " + quote(change.key, 64);
    if (change.key.empty() || change.key.size() > kMaxKeyBytes) {
      return beyond_limit(where, "bytes of a key", change.key.size(), fmt::format("1 to {}", kMaxKeyBytes));
    }
    if (value_bytes > kMaxValueBytes) {
      return beyond_limit(where, "bytes of a value", value_bytes, fmt::format("at most {}", kMaxValueBytes));
    }
    bytes += change.key.size() + value_bytes;
  }
  if (bytes > kMaxCommitBytes) {
    return beyond_limit("a commit", "bytes of its keys and values", bytes,
                        fmt::format("at most {}", kMaxCommitBytes));
  }
  return {};
}

Error not_leading(const std::string& where) {
  return Error{.kind = ErrorKind::kRefused,
               .where = where,
               .what = "this process does not lead",
               .got = "a call that only the leader may make",
               .expected = "a campaign won and no other leader since",
               .fix = "campaign again, and load the state anew"};
}

}  // namespace gossamer::host
