// SPDX-License-Identifier: Apache-2.0
//
// The JSON that etcd's gateway takes and gives: keys and values in base64, 64-bit numbers as decimal strings,
// zeros and empty values left out. Internal to host/posix. Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gossamer::host::etcd {

[[nodiscard]] std::string to_base64(std::string_view bytes);
// nullopt for other characters, or another length than a multiple of four.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

// The member of an object, or null where there is none.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, std::string_view name);
// A 64-bit number; 0 where there is none, as etcd leaves zeros out.
[[nodiscard]] std::uint64_t number(const nlohmann::json& object, std::string_view name);
// Decoded bytes of a key or value; empty where there are none.
[[nodiscard]] std::string bytes(const nlohmann::json& object, std::string_view name);

// Operations of a transaction.
[[nodiscard]] nlohmann::json put(std::string_view key, std::string_view value);
[[nodiscard]] nlohmann::json put_leased(std::string_view key, std::string_view value,
                                        const std::string& lease);
// Writes the present value once more: the key's version rises.
[[nodiscard]] nlohmann::json touch(std::string_view key);
[[nodiscard]] nlohmann::json remove(std::string_view key);
[[nodiscard]] nlohmann::json remove_below(std::string_view prefix);
[[nodiscard]] nlohmann::json get(std::string_view key);
[[nodiscard]] nlohmann::json as_operation(const nlohmann::json& range);

// A range request: keys from `from` on (inclusive) that begin with `prefix`, at most `limit` (0: all).
[[nodiscard]] nlohmann::json range_below(std::string_view prefix, std::string_view from, std::uint64_t limit);

// Conditions of a transaction on a key, in this order. It was made at this revision (0: it is not there). It
// was last changed at this revision. It has been written this often since it was made.
[[nodiscard]] nlohmann::json made_at(std::string_view key, std::uint64_t revision);
[[nodiscard]] nlohmann::json changed_at(std::string_view key, std::uint64_t revision);
[[nodiscard]] nlohmann::json has_version(std::string_view key, std::uint64_t version);

// The only key-value pair of a range's answer, or null.
[[nodiscard]] const nlohmann::json& only(const nlohmann::json& range_answer);
// The answer to operation `index` of a transaction, which was a range request.
[[nodiscard]] const nlohmann::json& range_answer(const nlohmann::json& transaction, std::size_t index);

}  // namespace gossamer::host::etcd
