// SPDX-License-Identifier: Apache-2.0
#include "json/begins_json.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

#include "json/read_json.h"

namespace gossamer {
namespace {

// Takes the first value, or the first of an array, and stops at what comes next.
class FirstValue final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Json = nlohmann::json;
  // `array`: the text begins with a bracket of an array.
  FirstValue(bool array, std::size_t bytes) : level_(array ? 1 : 0), bytes_(bytes) {}

  // Whether the text is JSON. One that is not `whole` may end within the first value.
  [[nodiscard]] bool is_json(bool whole) const { return known_ || (ended_ && !whole); }

  bool null() override { return next() && depth_ > level_; }
  bool boolean(bool /*value*/) override { return null(); }
  bool number_integer(Json::number_integer_t /*value*/) override { return null(); }
  bool number_unsigned(Json::number_unsigned_t /*value*/) override { return null(); }
  bool number_float(Json::number_float_t /*value*/, const std::string& /*digits*/) override { return null(); }
  bool binary(Json::binary_t& /*bytes*/) override { return null(); }
  bool string(std::string& /*text*/) override { return next() && value_done(); }
  bool key(std::string& /*name*/) override { return next(); }
  bool start_object(std::size_t /*elements*/) override { return next() && ++depth_ <= kMostJsonLevels; }
  bool start_array(std::size_t /*elements*/) override { return next() && ++depth_ <= kMostJsonLevels; }
  bool end_object() override { return next() && (--depth_, value_done()); }
  bool end_array() override { return end_object(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    ended_ = position >= bytes_;
    return false;
  }

 private:
  // What comes behind the first value shows that it was one.
  bool next() {
    known_ = done_;
    return !done_;
  }
  bool value_done() {
    done_ = depth_ == level_;
    known_ = done_ && level_ == 0;
    return !known_;
  }

  const std::size_t level_;
  const std::size_t bytes_;
  std::size_t depth_ = 0;
  bool done_ = false;
  bool known_ = false;
  bool ended_ = false;
};

}  // namespace

bool begins_json(std::string_view text, bool whole) {
  if (!text.starts_with('[') && !text.starts_with('{')) return false;
  FirstValue value(text.front() == '[', text.size());
  // It returns whether all was read, which tells nothing here.
  (void)nlohmann::json::sax_parse(text, &value);
  return value.is_json(whole);
}

}  // namespace gossamer
