// SPDX-License-Identifier: Apache-2.0
#include "host/posix/etcd_requests.h"

#include <openssl/evp.h>

#include <charconv>

#include "base/check.h"

namespace gossamer::host::etcd {

using nlohmann::json;

namespace {

// The first key behind all that begin with `prefix`. The last byte of `prefix` must not be the highest.
std::string end_of(std::string_view prefix) {
  CHECK(!prefix.empty() && prefix.back() != '\xff');
  std::string end(prefix);
  ++end.back();
  return end;
}

const unsigned char* unsigned_bytes(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  // Room for a zero: the library ends its text with one.
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), unsigned_bytes(bytes),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), unsigned_bytes(text),
                                   static_cast<int>(text.size()));
  if (text.size() % 4 != 0 || size != static_cast<int>(bytes.size())) return std::nullopt;
  // The library decodes padding to zeros.
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(bytes.size() - padding);
  return bytes;
}

const json& member(const json& object, std::string_view name) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::uint64_t number(const json& object, std::string_view name) {
  const json& text = member(object, name);
  std::uint64_t value = 0;
  if (!text.is_string()) return value;
  const auto& digits = text.get_ref<const std::string&>();
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::string bytes(const json& object, std::string_view name) {
  const json& text = member(object, name);
  if (!text.is_string()) return {};
  return from_base64(text.get_ref<const std::string&>()).value_or("");
}

json put(std::string_view key, std::string_view value) {
  return {{"request_put", {{"key", to_base64(key)}, {"value", to_base64(value)}}}};
}

json put_leased(std::string_view key, std::string_view value, const std::string& lease) {
  return {{"request_put", {{"key", to_base64(key)}, {"value", to_base64(value)}, {"lease", lease}}}};
}

json touch(std::string_view key) {
  return {{"request_put", {{"key", to_base64(key)}, {"ignore_value", true}, {"ignore_lease", true}}}};
}

json remove(std::string_view key) { return {{"request_delete_range", {{"key", to_base64(key)}}}}; }

json remove_below(std::string_view prefix) {
  return {{"request_delete_range", {{"key", to_base64(prefix)}, {"range_end", to_base64(end_of(prefix))}}}};
}

json get(std::string_view key) { return as_operation({{"key", to_base64(key)}}); }

json as_operation(const json& range) { return {{"request_range", range}}; }

json range_below(std::string_view prefix, std::string_view from, std::uint64_t limit) {
  return {{"key", to_base64(from)},
          {"range_end", to_base64(end_of(prefix))},
          {"limit", std::to_string(limit)},
          {"sort_order", "ASCEND"},
          {"sort_target", "KEY"}};
}

json made_at(std::string_view key, std::uint64_t revision) {
  return {{"key", to_base64(key)}, {"target", "CREATE"}, {"create_revision", std::to_string(revision)}};
}

json changed_at(std::string_view key, std::uint64_t revision) {
  return {{"key", to_base64(key)}, {"target", "MOD"}, {"mod_revision", std::to_string(revision)}};
}

json has_version(std::string_view key, std::uint64_t version) {
  return {{"key", to_base64(key)}, {"target", "VERSION"}, {"version", std::to_string(version)}};
}

const json& only(const json& range_answer) {
  static const json nothing;
  const json& pairs = member(range_answer, "kvs");
  return pairs.is_array() && pairs.size() == 1 ? pairs.front() : nothing;
}

const json& range_answer(const json& transaction, std::size_t index) {
  static const json nothing;
  const json& answers = member(transaction, "responses");
  if (!answers.is_array() || index >= answers.size()) return nothing;
  return member(answers[index], "response_range");
}

}  // namespace gossamer::host::etcd
