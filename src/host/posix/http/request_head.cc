// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/printable.h"

namespace gossamer::host {
namespace {

constexpr std::string_view kHost = "host";
constexpr std::string_view kLength = "content-length";
constexpr std::string_view kCoding = "transfer-encoding";
constexpr std::string_view kExpect = "expect";
constexpr std::string_view kConnection = "connection";
constexpr std::string_view kType = "content-type";
constexpr std::array<std::string_view, 6> kUsed = {kHost, kLength, kCoding, kExpect, kConnection, kType};

constexpr std::size_t kMostLengthDigits = 18;  // fits into 64 bits

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What RFC 9110 allows in the name of a field.
bool is_token(char c) {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_visible(char c) { return c > ' ' && c < '\x7F'; }

// Text, also in bytes beyond ASCII: `char` has a sign on some machines and none on others.
bool is_value(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7F'); }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

void HeadReader::refuse(std::string got, std::string expected, int status) {
  if (refusal_) return;
  refusal_ =
      HttpRefusal{.status = status,
                  .error = {.where = lines_ <= 1 ? std::string("request line")
                                                 : fmt::format("line {} of the request's head", lines_),
                            .what = status == 431   ? "the head of the request is too large"
                                    : status == 415 ? "cannot read a body of this type"
                                    : status == 417 ? "the expectation cannot be met"
                                                    : "two readers could understand this request differently",
                            .got = std::move(got),
                            .expected = std::move(expected),
                            .fix = {}}};
}

HeadReader::State HeadReader::take(std::string_view bytes, std::size_t& used) {
  used = 0;
  while (used < bytes.size() && !whole_ && !refusal_) {
    const char c = bytes[used++];
    if (++bytes_ > kMostHeadBytes) {
      refuse(fmt::format("more than {} bytes", kMostHeadBytes), "fewer and shorter fields", 431);
    } else if (c == '\n') {
      end_line();
    } else if (!line_.empty() && line_.back() == '\r') {
      refuse("a CR within a line", "lines that end with CR LF");
    } else {
      line_.push_back(c);
    }
  }
  if (refusal_) return State::kRefused;
  return whole_ ? State::kWhole : State::kMore;
}

void HeadReader::end_line() {
  if (line_.empty() || line_.back() != '\r') {
    return refuse("a line that ends with LF alone", "lines that end with CR LF");
  }
  line_.pop_back();
  if (line_.empty()) return finish();
  if (++lines_ > kMostHeadLines) {
    return refuse(fmt::format("more than {} lines", kMostHeadLines), "fewer fields", 431);
  }
  if (lines_ == 1) {
    request_line();
  } else {
    field();
  }
  line_.clear();
}

void HeadReader::request_line() {
  const std::string_view line = line_;
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  const std::string expected = "METHOD /TARGET HTTP/1.1, with one space between them";
  if (first == std::string_view::npos || first == last) return refuse(quote(line), expected);
  method_ = line.substr(0, first);
  target_ = line.substr(first + 1, last - first - 1);
  version_ = line.substr(last + 1);
  const bool good_method =
      !method_.empty() && std::ranges::all_of(method_, [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool good_target = target_.starts_with('/') && std::ranges::all_of(target_, is_visible) &&
                           target_.find('#') == std::string::npos;
  if (!good_method || !good_target || (version_ != "HTTP/1.1" && version_ != "HTTP/1.0")) {
    refuse(quote(line), expected);
  }
}

void HeadReader::field() {
  const std::string_view line = line_;
  if (line.front() == ' ' || line.front() == '\t') return refuse("a folded field", "each field on one line");
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || name.empty() || !std::ranges::all_of(name, is_token)) {
    return refuse(quote(line), "NAME: VALUE, without a space before the colon");
  }
  const std::string_view value = line.substr(colon + 1);
  if (!std::ranges::all_of(value, is_value)) return refuse(quote(line), "a value without control characters");
  const std::string used = lower_case(name);
  if (used == "content-encoding")
    return refuse(quote(line), "the body unpacked, without Content-Encoding", 415);
  if (std::ranges::find(kUsed, used) == kUsed.end()) return;
  const auto [at, fresh] = fields_.try_emplace(used, trimmed(value));
  if (fresh) return;
  if (used != kConnection) return refuse(fmt::format("{} twice", quote(name)), "each of these fields once");
  at->second += ',';
  at->second += trimmed(value);
}

const std::string* HeadReader::find(const std::string& name) const {
  const auto found = fields_.find(name);
  return found == fields_.end() ? nullptr : &found->second;
}

void HeadReader::read_length() {
  const std::string* text = find(std::string(kLength));
  if (text == nullptr) return;
  const bool plain = !text->empty() && text->size() <= kMostLengthDigits &&
                     std::ranges::all_of(*text, is_digit) && (text->size() == 1 || text->front() != '0');
  if (!plain) return refuse(fmt::format("Content-Length: {}", quote(*text)), "a number of bytes, in digits");
  std::from_chars(text->data(), text->data() + text->size(), head_.body_bytes);
  if (find(std::string(kCoding)) != nullptr) {
    refuse("Content-Length beside Transfer-Encoding", "one of the two");
  }
}

void HeadReader::read_coding() {
  const std::string* text = find(std::string(kCoding));
  if (text == nullptr) return;
  if (lower_case(*text) != "chunked" || version_ == "HTTP/1.0") {
    return refuse(fmt::format("Transfer-Encoding: {} in {}", quote(*text), version_), "chunked, in HTTP/1.1");
  }
  head_.chunked = true;
}

void HeadReader::read_type() {
  const std::string* text = find(std::string(kType));
  if (text != nullptr && lower_case(*text).starts_with("multipart/"))
    refuse(quote(*text), "application/json, application/x-ndjson or text/plain", 415);
}

void HeadReader::read_connection() {
  const std::string* text = find(std::string(kConnection));
  bool close = false;
  bool keep = false;
  std::string_view left = text == nullptr ? std::string_view() : *text;
  while (!left.empty()) {
    const std::size_t comma = std::min(left.find(','), left.size());
    const std::string word = lower_case(trimmed(left.substr(0, comma)));
    close = close || word == "close";
    keep = keep || word == "keep-alive";
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  head_.is_last = close || (version_ == "HTTP/1.0" && !keep);
}

void HeadReader::finish() {
  if (lines_ == 0) return refuse("an empty line", "a request line");
  read_length();
  read_coding();
  read_connection();
  read_type();
  const std::string* expect = find(std::string(kExpect));
  if (expect != nullptr && lower_case(*expect) != "100-continue") {
    refuse(quote(*expect), "100-continue, or no Expect", 417);
  }
  if (version_ == "HTTP/1.1" && find(std::string(kHost)) == nullptr) refuse("no Host", "one Host");
  const bool has_body = head_.chunked || head_.body_bytes > 0;
  if (has_body && method_ != "POST" && method_ != "PUT" && method_ != "PATCH") {
    refuse(fmt::format("{} with a body", method_), "a body with POST alone");
  }
  if (refusal_) return;
  head_.is_page = method_ == "GET" || method_ == "HEAD";
  head_.text = fmt::format("{} {} {}\r\nConnection: {}\r\n", method_, target_, version_,
                           head_.is_last ? "close" : "Keep-Alive");
  for (const auto& [name, value] : fields_) {
    if (name == kHost || name == kConnection || (name == kExpect && !has_body)) continue;
    head_.text += fmt::format("{}: {}\r\n", name, name == kExpect ? "100-continue" : value);
  }
  head_.text += "\r\n";
  whole_ = true;
}

}  // namespace gossamer::host
