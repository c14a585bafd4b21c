// SPDX-License-Identifier: Apache-2.0
//
// The keys of a configuration as one table. A row gives a key its name, type, range, words and one line of
// help, and names the field that has its value. The command line, TOML files, help, `--keys` and run.toml all
// walk that table, so a key exists everywhere or nowhere.
//
//   struct Thing { std::uint64_t rows = 64; std::optional<double> skew = {}; };
//   const KeyTable<Thing>& thing_keys() {
//     static const KeyTable<Thing> table(
//         {.listed_by = "gossamer thing --keys"},
//         {key<&Thing::rows>("rows", {.min = 1, .max = 4096}, "of the thing"),
//          key<&Thing::skew>("skew", {.max = 1}, "of its ids")});
//     return table;
//   }
//
// KeyTable<Config> knows the type of the configuration. Its base Keys does not, and neither does Values,
// which has the text of each key: readers, writers and run directories need no more.
//
// A table also knows the keys that it had once. A file with such a key at the value that all runs have now is
// still read, as run directories live longer than programs. Any other value, and the key's name on a command
// line, are refused by name.
//
// Thread rule: tables are immutable, all else is plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "settings/key_value.h"

namespace gossamer::settings {

struct Key {
  std::string_view name = {};  // "train.batch"
  std::string_view help = {};  // one line
  KeyType type = KeyType::kText;
  bool is_optional = false;  // the word `rules.unset` empties it
  KeyRules rules = {};
};

// "an integer 1..65536", "relu, identity or tanh", "auto or a number 0..0.95".
[[nodiscard]] std::string accepted_values(const Key& key);

// One `key = value`, with its place for messages.
struct KeySetting {
  std::string name;        // "train.batch"
  std::string text;        // "256"
  std::string where = {};  // "run.toml:3:1", empty for the command line
};

// Reads "train.batch=256" of a command line. The text may have further '='. The kUsage error shows `example`.
[[nodiscard]] Result<KeySetting> parse_setting(std::string_view word, std::string_view example);

class Values;

// A key that a table had once.
struct RemovedKey {
  std::string_view name;   // "train.batch"
  std::string_view value;  // its default, as to_toml() wrote it without quotes; what all runs do now
  std::string_view why;    // "it gained nothing"
};

// What messages say of a table.
struct KeyWording {
  std::string_view listed_by;      // the command that lists all keys: "gossamer train --keys"
  std::string_view one = "a key";  // or "an option"
};

// The keys of a table, without the type of the configuration.
class Keys {
 public:
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  virtual ~Keys() = default;

  // In the order in which they are printed and written.
  [[nodiscard]] std::span<const Key> all() const { return keys_; }
  // Null where there is no key of that name.
  [[nodiscard]] const Key* find(std::string_view name) const;
  [[nodiscard]] std::span<const RemovedKey> removed() const { return removed_; }
  // Null where there was none of that name.
  [[nodiscard]] const RemovedKey* find_removed(std::string_view name) const;
  // The place of a key of this table in all().
  [[nodiscard]] std::size_t place(const Key& key) const;

  // The values of a new configuration.
  [[nodiscard]] virtual Values defaults() const = 0;
  // The text of a setting in its usual spelling: "0.25" for "2.5e-1". kUsage as of KeyTable::set().
  [[nodiscard]] virtual Result<std::string> spell(const KeySetting& setting) const = 0;
  // The setting of a word "rows=50" of a command line, in its usual spelling. kUsage as of set_word().
  [[nodiscard]] virtual Result<KeySetting> spell_word(std::string_view word) const = 0;

  // kUsage for a setting whose key is not in the table. A removed key says why, and what to do.
  [[nodiscard]] Error unknown(const KeySetting& setting) const;
  // kUsage for a setting whose key takes other texts.
  [[nodiscard]] Error refused(const KeySetting& setting, std::string expected) const;
  // The same for a word of a command line. The message names the command that lists all keys.
  [[nodiscard]] Error refused_word(const KeySetting& setting, std::string expected) const;
  // "'gossamer train --keys' lists all keys".
  [[nodiscard]] std::string list_hint() const;

 protected:
  Keys(KeyWording wording, std::vector<Key> keys, std::vector<RemovedKey> removed)
      : wording_(wording), keys_(std::move(keys)), removed_(std::move(removed)) {}
  static KeySetting split(std::string_view word, std::string_view where);
  [[nodiscard]] Error unknown_word(const KeySetting& setting, std::string_view word) const;

 private:
  KeyWording wording_;
  std::vector<Key> keys_;
  std::vector<RemovedKey> removed_;
};

// A configuration without its type: the text of each key.
class Values {
 public:
  // One text for each key of the table, spelt as KeyTable::get() spells it. `keys` outlives the values.
  Values(const Keys& keys, std::vector<std::string> texts);

  [[nodiscard]] const Keys& keys() const { return *keys_; }
  [[nodiscard]] const std::string& text(const Key& key) const { return texts_[keys_->place(key)]; }
  // Sets them in order: later ones win. Errors are those of KeyTable::set().
  [[nodiscard]] Result<void> apply(const std::vector<KeySetting>& settings);
  // The same for words of a command line.
  [[nodiscard]] Result<void> apply_words(std::span<const std::string> words);
  bool operator==(const Values&) const = default;

 private:
  const Keys* keys_;
  std::vector<std::string> texts_;
};

// "  rows=64                    of the thing, 1..4096\n" for each key. The key has `width` columns.
inline constexpr std::size_t kHelpWidth = 26;
[[nodiscard]] std::string help_lines(const Values& values, std::size_t width = kHelpWidth);

// A key with the functions that read and write its field. set() gives what it expects in place of a text that
// it refuses. Then nothing has changed.
template <class Config>
struct KeyRow {
  Key key;
  std::string (*get)(const Config&, const Key&);
  std::optional<std::string> (*set)(Config&, const Key&, std::string_view text);
};

// The rows of several parts of a table, one after the other.
template <class Config>
[[nodiscard]] std::vector<KeyRow<Config>> join_rows(
    std::initializer_list<std::vector<KeyRow<Config>>> parts) {
  std::vector<KeyRow<Config>> rows;
  for (const auto& part : parts) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

template <class Config>
class KeyTable final : public Keys {
 public:
  KeyTable(KeyWording wording, std::vector<KeyRow<Config>> rows, std::vector<RemovedKey> removed = {})
      : Keys(wording, keys_of(rows), std::move(removed)), rows_(std::move(rows)) {}

  // The value of a key as text that set() takes back to the same value.
  [[nodiscard]] std::string get(const Config& config, const Key& key) const {
    return rows_[place(key)].get(config, key);
  }

  // Sets one key. kUsage names the nearest key, or what the key takes; then nothing has changed.
  [[nodiscard]] Result<void> set(Config& config, const KeySetting& setting) const {
    const Key* key = find(setting.name);
    if (key == nullptr) return unknown(setting);
    auto expected = rows_[place(*key)].set(config, *key, setting.text);
    if (expected.has_value()) return refused(setting, *std::move(expected));
    return {};
  }

  // The same from a word "rows=50" of a command line, for commands whose keys are such words.
  [[nodiscard]] Result<void> set_word(Config& config, std::string_view word,
                                      std::string_view where = {}) const {
    const KeySetting setting = split(word, where);
    const Key* key = find(setting.name);
    if (key == nullptr) return unknown_word(setting, word);
    auto expected = rows_[place(*key)].set(config, *key, setting.text);
    if (expected.has_value()) return refused_word(setting, *std::move(expected));
    return {};
  }

  // Sets them in order: later ones win.
  [[nodiscard]] Result<void> apply(Config& config, const std::vector<KeySetting>& settings) const {
    for (const KeySetting& setting : settings) {
      if (auto done = set(config, setting); !done.ok()) return done;
    }
    return {};
  }

  [[nodiscard]] Values values(const Config& config) const {
    std::vector<std::string> texts;
    for (const Key& key : all()) texts.push_back(get(config, key));
    return {*this, std::move(texts)};
  }
  // Requires values of this table.
  [[nodiscard]] Config config(const Values& values) const {
    Config out;
    for (const Key& key : all()) {
      const std::string& text = values.text(key);
      const bool is_set = get(out, key) == text || !rows_[place(key)].set(out, key, text).has_value();
      CHECK(is_set, key.name, text);
    }
    return out;
  }

  [[nodiscard]] Values defaults() const override { return values(Config{}); }
  [[nodiscard]] Result<std::string> spell(const KeySetting& setting) const override {
    Config scratch;
    if (auto done = set(scratch, setting); !done.ok()) return done.error();
    return get(scratch, *find(setting.name));
  }
  [[nodiscard]] Result<KeySetting> spell_word(std::string_view word) const override {
    Config scratch;
    if (auto done = set_word(scratch, word); !done.ok()) return done.error();
    KeySetting setting = split(word, {});
    setting.text = get(scratch, *find(setting.name));
    return setting;
  }

 private:
  static std::vector<Key> keys_of(const std::vector<KeyRow<Config>>& rows) {
    std::vector<Key> keys;
    for (const KeyRow<Config>& row : rows) keys.push_back(row.key);
    return keys;
  }

  std::vector<KeyRow<Config>> rows_;
};

namespace key_detail {

template <class Pointer>
struct Member;
template <class Class, class Field>
struct Member<Field Class::*> {
  using Owner = Class;
};

// The field that member pointers lead to, each from the one before.
template <auto... kPath>
auto& field(auto& config) {
  return (config.*....*kPath);
}

}  // namespace key_detail

// The row of the field that member pointers lead to, such as key<&Run::thing, &Thing::rows>(...).
template <auto kFirst, auto... kRest>
[[nodiscard]] auto key(std::string_view name, const KeyRules& rules, std::string_view help) {
  using Config = typename key_detail::Member<decltype(kFirst)>::Owner;
  using Field = std::remove_cvref_t<decltype(key_detail::field<kFirst, kRest...>(std::declval<Config&>()))>;
  const KeyType type = rules.choices.empty() ? type_of<Field>() : KeyType::kChoice;
  return KeyRow<Config>{
      .key = {.name = name, .help = help, .type = type, .is_optional = kIsOptional<Field>, .rules = rules},
      .get = [](const Config& config,
                const Key& key) { return write(key_detail::field<kFirst, kRest...>(config), key.rules); },
      .set = [](Config& config, const Key& key, std::string_view text) -> std::optional<std::string> {
        if (read(text, key.rules, key_detail::field<kFirst, kRest...>(config))) return std::nullopt;
        return key.type == KeyType::kText ? "a text in UTF-8" : accepted_values(key);
      }};
}

}  // namespace gossamer::settings
