// SPDX-License-Identifier: Apache-2.0
#include "settings/key_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"

namespace gossamer::settings {
namespace {

// "a, b or c".
std::string join_choices(const std::vector<std::string_view>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

// `auto` is the first choice, any other word for an empty optional the last.
std::string accepted_choices(const Key& key) {
  std::vector<std::string_view> choices = key.rules.choices;
  if (key.is_optional && !key.rules.unset.empty())
    choices.insert(key.rules.unset == kAuto ? choices.begin() : choices.end(), key.rules.unset);
  return join_choices(choices);
}

Error usage(const KeySetting& setting, std::string what) {
  return {.kind = ErrorKind::kUsage, .where = setting.where, .what = std::move(what)};
}

}  // namespace

std::string accepted_values(const Key& key) {
  const KeyRules& rules = key.rules;
  const bool may_be_unset = key.is_optional && !rules.unset.empty();
  const std::string lead = may_be_unset ? fmt::format("{} or ", rules.unset) : "";
  switch (key.type) {
    case KeyType::kChoice: return accepted_choices(key);
    case KeyType::kSwitch: return lead + "true or false";
    case KeyType::kText: return lead + "a text";
    case KeyType::kNumber: return fmt::format("{}a number {}..{}", lead, rules.min, rules.max);
    case KeyType::kList:
      return fmt::format("none, or up to {} integers {}..{}, multiples of {}, such as 256,128", kLongestList,
                         rules.min, rules.max, rules.multiple_of);
    case KeyType::kInteger: break;
  }
  std::string text = fmt::format("{}an integer {:.0f}..{:.0f}", lead, rules.min, rules.max);
  if (rules.multiple_of > 1) text += fmt::format(", a multiple of {}", rules.multiple_of);
  return text;
}

Result<KeySetting> parse_setting(std::string_view word, std::string_view example) {
  const std::size_t equals = word.find('=');
  if (equals != std::string_view::npos && equals != 0)
    return KeySetting{.name = std::string(word.substr(0, equals)),
                      .text = std::string(word.substr(equals + 1))};
  return Error{.kind = ErrorKind::kUsage,
               .what = "cannot read an override",
               .got = fmt::format("'{}'", word),
               .expected = fmt::format("key=value, for example {}", example),
               .fix = "write the key, '=' and the value without spaces"};
}

const Key* Keys::find(std::string_view name) const {
  const auto found = std::ranges::find(keys_, name, &Key::name);
  return found == keys_.end() ? nullptr : &*found;
}

const RemovedKey* Keys::find_removed(std::string_view name) const {
  const auto found = std::ranges::find(removed_, name, &RemovedKey::name);
  return found == removed_.end() ? nullptr : &*found;
}

std::size_t Keys::place(const Key& key) const {
  const auto place = static_cast<std::size_t>(&key - keys_.data());
  CHECK(place < keys_.size(), key.name);
  return place;
}

std::string Keys::list_hint() const {
  return fmt::format("'{}' lists all {}s", wording_.listed_by,
                     wording_.one.substr(wording_.one.find(' ') + 1));
}

Error Keys::unknown(const KeySetting& setting) const {
  const std::string_view noun = wording_.one.substr(wording_.one.find(' ') + 1);
  if (const RemovedKey* const old = find_removed(setting.name)) {
    Error error = usage(setting, fmt::format("the {} '{}' was removed", noun, setting.name));
    error.got = fmt::format("'{}'", setting.text);
    error.expected = fmt::format("nothing: all runs do what its value {} said", old->value);
    error.fix = fmt::format("leave {} out: {}", setting.name, old->why);
    return error;
  }
  std::vector<std::string_view> names;
  for (const Key& known : keys_) names.push_back(known.name);
  Error error = usage(setting, fmt::format("there is no {} '{}'", noun, setting.name));
  error.expected = fmt::format("{} such as '{}'", wording_.one, nearest_name(setting.name, names));
  error.fix = fmt::format("'{}' lists all of them", wording_.listed_by);
  return error;
}

Error Keys::unknown_word(const KeySetting& setting, std::string_view word) const {
  Error error = unknown(setting);
  if (find_removed(setting.name) != nullptr) return error;
  error.got = fmt::format("'{}'", word);
  error.fix = list_hint();
  return error;
}

Error Keys::refused(const KeySetting& setting, std::string expected) const {
  Error error = refused_word(setting, std::move(expected));
  error.fix = fmt::format("{}: {}", setting.name, find(setting.name)->help);
  return error;
}

Error Keys::refused_word(const KeySetting& setting, std::string expected) const {
  Error error = usage(setting, fmt::format("cannot set {}", setting.name));
  error.got = fmt::format("'{}'", setting.text);
  error.expected = std::move(expected);
  error.fix = list_hint();
  return error;
}

KeySetting Keys::split(std::string_view word, std::string_view where) {
  const std::size_t equals = std::min(word.find('='), word.size());
  return {.name = std::string(word.substr(0, equals)),
          .text = std::string(word.substr(std::min(equals + 1, word.size()))),
          .where = std::string(where)};
}

Values::Values(const Keys& keys, std::vector<std::string> texts) : keys_(&keys), texts_(std::move(texts)) {
  CHECK(texts_.size() == keys.all().size());
}

Result<void> Values::apply(const std::vector<KeySetting>& settings) {
  for (const KeySetting& setting : settings) {
    auto text = keys_->spell(setting);
    if (!text.ok()) return text.error();
    texts_[keys_->place(*keys_->find(setting.name))] = *std::move(text);
  }
  return {};
}

Result<void> Values::apply_words(std::span<const std::string> words) {
  for (const std::string& word : words) {
    auto setting = keys_->spell_word(word);
    if (!setting.ok()) return setting.error();
    texts_[keys_->place(*keys_->find(setting->name))] = std::move(setting->text);
  }
  return {};
}

std::string help_lines(const Values& values, std::size_t width) {
  std::string text;
  for (const Key& key : values.keys().all()) {
    const KeyRules& rules = key.rules;
    const std::string_view shown = rules.shown.empty() ? std::string_view(values.text(key)) : rules.shown;
    text += fmt::format("  {:<{}} {}", fmt::format("{}={}", key.name, shown), width, key.help);
    const bool has_range = key.type == KeyType::kInteger || key.type == KeyType::kNumber;
    text += has_range ? fmt::format(", {}..{}\n", rules.min, rules.max) : "\n";
  }
  return text;
}

}  // namespace gossamer::settings
