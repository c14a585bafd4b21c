// SPDX-License-Identifier: Apache-2.0
#include "json/read_json.h"

#include <nlohmann/json.hpp>

#include <string>

namespace gossamer {
namespace {

// Goes through a text without keeping any of it, and stops where it is nested too deeply.
template <class Json>
class Levels final : public nlohmann::json_sax<Json> {
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
  bool key(std::string& /*name*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return deeper(); }
  bool start_array(std::size_t /*elements*/) override { return deeper(); }
  bool end_object() override { return higher(); }
  bool end_array() override { return higher(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool deeper() { return ++levels_ <= kMostJsonLevels; }
  bool higher() {
    --levels_;
    return true;
  }

  std::size_t levels_ = 0;
};

template <class Json>
bool within_levels(std::string_view text, typename Json::input_format_t format) {
  Levels<Json> levels;
  return Json::sax_parse(text, &levels, format);
}

template <class Json>
Json no_json() {
  return Json(Json::value_t::discarded);
}

}  // namespace

template <class Json>
Json read_json(std::string_view text) {
  if (!within_levels<Json>(text, Json::input_format_t::json)) return no_json<Json>();
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <class Json>
Json read_cbor(std::string_view bytes) {
  if (!within_levels<Json>(bytes, Json::input_format_t::cbor)) return no_json<Json>();
  return Json::from_cbor(bytes, /*strict=*/true, /*allow_exceptions=*/false);
}

template nlohmann::json read_json<nlohmann::json>(std::string_view text);
template nlohmann::ordered_json read_json<nlohmann::ordered_json>(std::string_view text);
template nlohmann::json read_cbor<nlohmann::json>(std::string_view bytes);

}  // namespace gossamer
