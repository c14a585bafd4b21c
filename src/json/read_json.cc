// SPDX-License-Identifier: Apache-2.0
#include "json/read_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace gossamer {
namespace {

// Goes through a text without keeping any value, and stops where it breaks a rule.
template <class Json>
class Rules final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(typename Json::number_integer_t /*value*/) override { return true; }
  bool number_unsigned(typename Json::number_unsigned_t /*value*/) override { return true; }
  bool number_float(typename Json::number_float_t /*value*/, const std::string& /*digits*/) override {
    return true;
  }
  bool string(std::string& /*text*/) override { return true; }
  bool binary(typename Json::binary_t& /*bytes*/) override { return true; }
  bool key(std::string& name) override {
    if (keys_.back().insert(name).second) return true;
    why = fmt::format("the key {} twice in one object", quote(name));
    return false;
  }
  bool start_object(std::size_t /*elements*/) override { return deeper(); }
  bool start_array(std::size_t /*elements*/) override { return deeper(); }
  bool end_object() override { return higher(); }
  bool end_array() override { return higher(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    why = fmt::format("no JSON, by byte {}", position);
    return false;
  }

  std::string why;  // a text is not taken

 private:
  bool deeper() {
    keys_.emplace_back();
    if (keys_.size() <= kMostJsonLevels) return true;
    why = fmt::format("more than {} levels", kMostJsonLevels);
    return false;
  }
  bool higher() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;  // of each level
};

template <class Json>
bool keeps_rules(std::string_view text, typename Json::input_format_t format) {
  Rules<Json> rules;
  return Json::sax_parse(text, &rules, format);
}

// Whether each item says its length. The library reads items without, which nothing of ours writes, by
// recursion: one in the other, they would take all of the stack.
bool says_lengths(std::string_view bytes) {
  constexpr int kByteString = 2;
  constexpr int kTextString = 3;
  constexpr int kNoLength = 31;
  while (!bytes.empty()) {
    const auto head = static_cast<unsigned char>(bytes.front());
    const int major = head >> 5;
    const int info = head & 31;
    if (info == kNoLength) return false;
    const std::size_t width = info < 24 ? 0 : std::size_t{1} << (info - 24);
    if (info > 27 || bytes.size() < 1 + width) return false;
    auto value = static_cast<std::uint64_t>(width > 0 ? 0 : info);
    for (std::size_t i = 0; i < width; ++i) value = value << 8 | static_cast<unsigned char>(bytes[1 + i]);
    bytes.remove_prefix(1 + width);
    if (major != kByteString && major != kTextString) continue;
    if (value > bytes.size()) return false;
    bytes.remove_prefix(static_cast<std::size_t>(value));
  }
  return true;
}

template <class Json>
Json no_json() {
  return Json(Json::value_t::discarded);
}

}  // namespace

template <class Json>
Json read_json(std::string_view text) {
  if (!keeps_rules<Json>(text, Json::input_format_t::json)) return no_json<Json>();
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <class Json>
Json read_cbor(std::string_view bytes) {
  if (!says_lengths(bytes) || !keeps_rules<Json>(bytes, Json::input_format_t::cbor)) return no_json<Json>();
  return Json::from_cbor(bytes, /*strict=*/true, /*allow_exceptions=*/false);
}

std::string why_no_json(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return text.empty() ? "an empty text" : "a blank text";
  Rules<nlohmann::json> rules;
  return nlohmann::json::sax_parse(text, &rules) ? std::string() : std::move(rules.why);
}

template nlohmann::json read_json<nlohmann::json>(std::string_view text);
template nlohmann::ordered_json read_json<nlohmann::ordered_json>(std::string_view text);
template nlohmann::json read_cbor<nlohmann::json>(std::string_view bytes);

}  // namespace gossamer
