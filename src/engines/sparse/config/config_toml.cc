// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/config_toml.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <utility>

#include "base/nearest_name.h"

namespace gossamer::engine {
namespace {

std::string place(std::string_view file, const toml::source_region& source) {
  return fmt::format("{}:{}:{}", file, source.begin.line, source.begin.column);
}

Error usage(std::string where, std::string what) {
  return {.kind = ErrorKind::kUsage, .where = std::move(where), .what = std::move(what)};
}

Error unknown_key(std::string_view file, const toml::source_region& source, std::string_view name) {
  TrainConfig scratch;
  return set_key(scratch, name, "", place(file, source)).error();
}

// The text of a scalar node that fits the key's type; empty if the kinds do not match.
std::optional<std::string> scalar_text(const toml::node& node, KeyType type) {
  const bool word = type == KeyType::kText || type == KeyType::kChoice || type == KeyType::kList;
  if (const auto* text = node.as_string()) {
    if (word || text->get() == "auto") return text->get();
    return std::nullopt;
  }
  if (word) return std::nullopt;
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

std::string describe(const toml::node& node) {
  if (const auto* text = node.as_string()) return fmt::format("the text \"{}\"", text->get());
  if (node.is_array()) return "an array";
  if (const auto* integer = node.as_integer()) return fmt::format("the integer {}", integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("the number {}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return "a date or time";
}

bool is_section(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(config_keys(),
                             [&prefix](const ConfigKey& key) { return key.name.starts_with(prefix); });
}

Error unknown_section(std::string_view file, const toml::source_region& source, std::string_view name) {
  std::vector<std::string_view> sections;
  for (const ConfigKey& key : config_keys()) {
    const std::size_t dot = key.name.find('.');
    if (dot != std::string_view::npos) sections.push_back(key.name.substr(0, dot));
  }
  Error error = usage(place(file, source), fmt::format("there is no section [{}]", name));
  error.expected = fmt::format("a section such as [{}]", nearest_name(name, sections));
  error.fix = "'gossamer train --keys' lists all keys";
  return error;
}

struct Reader {
  std::string_view file;
  std::vector<KeySetting> settings;

  Result<void> table(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string full = prefix + std::string(name.str());
      if (const auto* inner = node.as_table()) {
        if (!is_section(full)) return unknown_section(file, name.source(), full);
        if (auto done = this->table(*inner, full + "."); !done.ok()) return done.error();
        continue;
      }
      if (auto done = scalar(full, name, node); !done.ok()) return done.error();
    }
    return {};
  }

  Result<void> scalar(const std::string& full, const toml::key& name, const toml::node& node) {
    const ConfigKey* key = find_key(full);
    if (key == nullptr) return unknown_key(file, name.source(), full);
    std::optional<std::string> text = scalar_text(node, key->type);
    if (!text.has_value()) {
      Error error = usage(place(file, node.source()), fmt::format("cannot set {}", full));
      error.got = describe(node);
      error.expected = accepted_values(*key);
      error.fix = fmt::format("{}: {}", full, key->help);
      return error;
    }
    settings.push_back({.name = full, .text = std::move(*text), .where = place(file, node.source())});
    return {};
  }
};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string toml_value(const ConfigKey& key, const std::string& text) {
  const bool word = key.type == KeyType::kText || key.type == KeyType::kChoice ||
                    key.type == KeyType::kList || text == "auto";
  return word ? quoted(text) : text;
}

}  // namespace

Result<std::vector<KeySetting>> parse_toml(std::string_view text, std::string_view file) {
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    Error error = usage(place(file, parsed.error().source()), "cannot read this as TOML");
    error.got = std::string(parsed.error().description());
    error.expected = "lines such as [train] and batch = 256, texts in double quotes";
    error.fix = "mend the line";
    return error;
  }
  Reader reader{.file = file, .settings = {}};
  if (auto done = reader.table(parsed.table(), ""); !done.ok()) return done.error();
  return std::move(reader.settings);
}

Result<KeySetting> parse_override(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    Error error = usage("", "cannot read an override");
    error.got = fmt::format("'{}'", text);
    error.expected = "key=value, for example train.batch=256";
    error.fix = "write the key, '=' and the value without spaces";
    return error;
  }
  return KeySetting{
      .name = std::string(text.substr(0, equals)), .text = std::string(text.substr(equals + 1)), .where = ""};
}

Result<void> apply_settings(TrainConfig& config, const std::vector<KeySetting>& settings) {
  for (const KeySetting& setting : settings) {
    if (auto done = set_key(config, setting.name, setting.text, setting.where); !done.ok()) return done;
  }
  return {};
}

std::string to_toml(const TrainConfig& config) {
  std::string out;
  std::string_view section;
  for (const ConfigKey& key : config_keys()) {
    const std::size_t dot = key.name.find('.');
    const std::string_view own = dot == std::string_view::npos ? "" : key.name.substr(0, dot);
    if (own != section) out += fmt::format("\n[{}]\n", own);
    section = own;
    const std::string_view last = dot == std::string_view::npos ? key.name : key.name.substr(dot + 1);
    const std::string value = toml_value(key, get_key(config, key));
    out +=
        fmt::format("{:<40} # {}; {}\n", fmt::format("{} = {}", last, value), key.help, accepted_values(key));
  }
  return out;
}

}  // namespace gossamer::engine
