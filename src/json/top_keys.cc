// SPDX-License-Identifier: Apache-2.0
#include "json/top_keys.h"

#include <nlohmann/json.hpp>

#include <cstddef>

#include "json/read_json.h"

namespace gossamer {
namespace {

class TopKeyReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TopKeyReader(TopKeys& keys) : keys_(keys) {}

  bool null() override { return scalar(); }
  bool boolean(bool /*value*/) override { return scalar(); }
  bool number_integer(nlohmann::json::number_integer_t /*value*/) override { return scalar(); }
  bool number_unsigned(nlohmann::json::number_unsigned_t /*value*/) override { return scalar(); }
  bool number_float(nlohmann::json::number_float_t /*value*/, const std::string& /*digits*/) override {
    return scalar();
  }
  bool binary(nlohmann::json::binary_t& /*bytes*/) override { return scalar(); }
  bool string(std::string& /*text*/) override { return scalar(); }
  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    keys_.all.push_back(name);
    return keys_.all.size() < kMostKeys;
  }
  bool start_object(std::size_t /*elements*/) override {
    if (depth_ == 2 && opened_) keys_.arrays_of_objects.push_back(keys_.all.back());
    return deeper(/*array=*/false);
  }
  bool start_array(std::size_t /*elements*/) override { return deeper(/*array=*/true); }
  bool end_object() override { return --depth_ > 0; }
  bool end_array() override { return end_object(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool scalar() {
    opened_ = false;
    return true;
  }
  bool deeper(bool array) {
    opened_ = array && depth_ == 1 && !keys_.all.empty();
    return ++depth_ <= kMostJsonLevels;
  }

  static constexpr std::size_t kMostKeys = 64;

  TopKeys& keys_;
  std::size_t depth_ = 0;
  bool opened_ = false;  // an array of the top, of which no element has been seen
};

}  // namespace

TopKeys top_keys(std::string_view text) {
  TopKeys keys;
  TopKeyReader reader(keys);
  // It returns whether all was read, which tells nothing here.
  (void)nlohmann::json::sax_parse(text, &reader);
  return keys;
}

}  // namespace gossamer
