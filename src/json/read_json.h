// SPDX-License-Identifier: Apache-2.0
//
// read_json: the one reader of JSON and CBOR that somebody else may have written. Such are files of a run or
// a model, messages, and answers of etcd. Text within too many brackets is an error. The library takes such a
// text, but copies, compares and writes the value by recursion, which ends at the end of the stack. A key
// that stands twice in one object is an error, too: the library would take the last of its values without a
// word.
//
//   const auto json = read_json<nlohmann::json>(text);
//   if (!json.is_object()) return damaged(path);
//
// A line of records is read without a value of JSON, by src/learn/data/read, which has the same limit.
//
// Errors: a value that is_discarded(), for text that is no JSON, has a key twice in one object, or is nested
// deeper than kMostJsonLevels.
// Thread rule: any thread, no state.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace gossamer {

// Arrays and objects within each other, the outermost one counted. The deepest files of ours have 5.
inline constexpr std::size_t kMostJsonLevels = 32;

// `Json` is nlohmann::json or nlohmann::ordered_json.
template <class Json>
[[nodiscard]] Json read_json(std::string_view text);
template <class Json>
[[nodiscard]] Json read_cbor(std::string_view bytes);

// Why read_json() does not take a text, for people: "an empty text", "the key 'a' twice in one object". Empty
// where it does.
[[nodiscard]] std::string why_no_json(std::string_view text);

extern template nlohmann::json read_json<nlohmann::json>(std::string_view text);
extern template nlohmann::ordered_json read_json<nlohmann::ordered_json>(std::string_view text);
extern template nlohmann::json read_cbor<nlohmann::json>(std::string_view bytes);

}  // namespace gossamer
