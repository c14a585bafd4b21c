// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/document_line.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "json/read_json.h"
#include "learn/text/words.h"

namespace gossamer::tokens {
namespace {

// Walks over a line and keeps in `seen` the first byte that the JSON library has not read.
struct WatchedByte {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** seen = nullptr;

  reference operator*() const { return *at; }
  WatchedByte& operator++() {
    *seen = ++at;
    return *this;
  }
  WatchedByte operator++(int) {
    WatchedByte before = *this;
    ++*this;
    return before;
  }
  bool operator==(const WatchedByte& other) const { return at == other.at; }
};

// Takes the JSON library's events of one line.
class DocumentEvents {
 public:
  using Json = nlohmann::json;
  DocumentEvents(std::string_view line, const char* const& seen, std::string& out)
      : line_(line), seen_(seen), out_(out) {}

  bool null() { return value("null"); }
  bool boolean(bool given) { return value(given ? "true" : "false"); }
  bool number_integer(std::int64_t number) { return value(fmt::format("{}", number)); }
  bool number_unsigned(std::uint64_t number) { return value(fmt::format("{}", number)); }
  bool number_float(double /*number*/, const std::string& digits) { return value(quote(digits)); }
  bool string(std::string& text) {
    if (levels_ == 0) return value("a string");
    if (!std::exchange(text_follows_, false)) return true;
    has_text_ = true;
    out_ += text;
    return true;
  }
  bool binary(Json::binary_t& /*bytes*/) { return false; }  // never in text
  bool start_object(std::size_t /*elements*/) {
    if (levels_ > 0 && !value("an object")) return false;
    return deeper();
  }
  bool start_array(std::size_t /*elements*/) { return value("a list") && deeper(); }
  bool end_object() { return higher(); }
  bool end_array() { return higher(); }
  bool key(std::string& name) {
    if (levels_ > 1) return true;
    after_key_ = seen_;
    text_follows_ = name == "text";
    if (text_follows_ && has_text_) {
      // Between the quotes of this key there is no other: it reads "text".
      const std::size_t last = static_cast<std::size_t>(seen_ - line_.data()) - 1;
      bad_ = data::bad_at(line_.rfind('"', last - 1), "a key stands twice in one line", quote(name),
                          "each key once");
      return false;
    }
    constexpr std::size_t kEnough = 8;
    if (keys_.size() < kEnough) keys_.push_back(name.substr(0, kLineBytes));
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const Json::exception& error);

  // After the last event of a valid line.
  [[nodiscard]] std::optional<data::BadLine> finish() {
    if (has_text_) return std::nullopt;
    return bad_value(0, "a line has no \"text\"",
                     keys_.empty() ? "no key" : "the keys " + data::quoted_list(keys_));
  }
  [[nodiscard]] data::BadLine bad() { return std::move(bad_); }

 private:
  static data::BadLine bad_value(std::size_t offset, std::string what, std::string got) {
    return data::bad_at(offset, std::move(what), std::move(got), "an object with a string \"text\"");
  }
  // A value that is no string; it is wrong as the line and as its "text".
  bool value(std::string_view got) {
    if (levels_ > 0 && !text_follows_) return true;
    const char* at = levels_ == 0 ? line_.data() : after_key_;
    while (at < line_.data() + line_.size() && std::strchr(" \t\r:", *at) != nullptr) ++at;
    bad_ = bad_value(static_cast<std::size_t>(at - line_.data()),
                     levels_ == 0 ? "the line is not a document" : "cannot use \"text\"", std::string(got));
    return false;
  }
  bool deeper() {
    if (++levels_ <= kMostJsonLevels) return true;
    bad_ = data::bad_at(static_cast<std::size_t>(seen_ - line_.data()) - 1, "JSON that is nested too deeply",
                        "more levels", fmt::format("at most {} levels", kMostJsonLevels));
    return false;
  }
  bool higher() {
    --levels_;
    return true;
  }

  std::string_view line_;
  const char* const& seen_;
  std::string& out_;
  std::size_t levels_ = 0;  // objects and lists around the next event
  const char* after_key_ = nullptr;
  bool text_follows_ = false;
  bool has_text_ = false;
  std::vector<std::string> keys_;  // the first of the object
  data::BadLine bad_;
};

bool DocumentEvents::parse_error(std::size_t position, const std::string& token,
                                 const Json::exception& error) {
  const auto is = [&](const char* words) { return std::strstr(error.what(), words) != nullptr; };
  // The library says how many bytes it has read: the last of them is the wrong one.
  const std::size_t last = std::max<std::size_t>(position, 1) - 1;
  if (is("unexpected end of input") || last >= line_.size()) {
    bad_ = data::bad_at(line_.size(), "the line is not valid JSON", "the end of the line",
                        "one JSON object a line");
  } else if (is("ill-formed UTF-8")) {
    // The byte that the library stops at may be a good one behind the first ones of a character.
    const std::size_t at = std::min(text::valid_utf8_prefix(line_), last);
    bad_ = data::bad_at(at, "the text is not UTF-8", quote(line_.substr(at, 1)), "UTF-8");
  } else if (is("surrogate")) {
    bad_ = data::bad_at(last, "half of a surrogate pair is no character",
                        quote(token.substr(std::min(token.rfind('\\'), token.size()))),
                        "both halves, or the character itself");
  } else {
    bad_ = data::bad_at(last, "the line is not valid JSON", quote(line_.substr(last, 12)),
                        "one JSON object a line");
  }
  return false;
}

}  // namespace

std::optional<data::BadLine> read_document(std::string_view line, std::string& out) {
  // The JSON library takes a zero byte for the end.
  if (const std::size_t zero = line.find('\0'); zero != std::string_view::npos) {
    return data::bad_at(zero, "the line is not valid JSON", "a zero byte", "one JSON object a line");
  }
  const std::size_t before = out.size();
  const char* seen = line.data();
  DocumentEvents events(line, seen, out);
  const WatchedByte begin{.at = line.data(), .seen = &seen};
  const WatchedByte end{.at = line.data() + line.size(), .seen = &seen};
  std::optional<data::BadLine> bad;
  if (!nlohmann::json::sax_parse(begin, end, &events)) {
    bad = events.bad();
  } else {
    bad = events.finish();
  }
  if (bad) out.resize(before);
  return bad;
}

}  // namespace gossamer::tokens
