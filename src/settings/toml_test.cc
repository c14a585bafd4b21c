// SPDX-License-Identifier: Apache-2.0
#include "settings/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace gossamer::settings {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

enum class Schedule { kLinear, kCosine };

struct File {
  std::uint64_t seed = 1;
  std::uint64_t batch = 256;
  Schedule schedule = Schedule::kLinear;
  std::optional<double> dropout = {};
  bool shrink = true;
  std::vector<std::uint32_t> dense = {};
  std::string train = {};
  bool operator==(const File&) const = default;
};

const KeyTable<File>& file_keys() {
  static const KeyTable<File> table(
      {.listed_by = "gossamer train --keys"},
      {key<&File::seed>("seed", {.max = 99}, "names every stream"),
       key<&File::batch>("train.batch", {.min = 1, .max = 65536}, "records in a step"),
       key<&File::schedule>("train.schedule", {.choices = {"linear", "cosine"}}, "how the rate falls"),
       key<&File::dropout>("model.dropout", {.max = 0.95}, "share of units"),
       key<&File::shrink>("model.shrink", {}, "whether it does"),
       key<&File::dense>("model.dense", {.min = 1, .max = 64}, "widths"),
       key<&File::train>("data.train", {}, "a file")},
      {{.name = "train.parts", .value = "1", .why = "they gained nothing"},
       {.name = "old.mode", .value = "auto", .why = "there is one mode"},
       {.name = "old.fast", .value = "true", .why = "all runs are"}});
  return table;
}

Result<File> read(std::string_view text) { return read_config(file_keys(), text, "my.toml"); }

// The texts of to_toml read back to an equal config, for defaults and for values that need quoting.
TEST(Toml, RoundTrips) {
  File config;
  EXPECT_EQ(*read(to_toml(file_keys().values(config))), config);
  config = {.seed = 7,
            .batch = 8,
            .schedule = Schedule::kCosine,
            .dropout = 0.1 + 0.2,
            .shrink = false,
            .dense = {3, 4},
            .train = "a \"b\\c\" \n\x7f\xc3\xa9.txt"};
  const auto back = read(to_toml(file_keys().values(config)));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, config);
}

// Claim: TOML holds texts in UTF-8, whatever their characters, and no other bytes.
TEST(Toml, HoldsTextsInUtf8) {
  for (const std::string text : {"", "plain \"text\" \\ \n\x01", "gr\xc3\xbc\xc3\x9f", "\xf0\x9f\x90\xb1"})
    EXPECT_TRUE(is_toml_text(text)) << text;
  for (const std::string text : {"u\xff", "\xc3", "\xed\xa0\x80", "\xc0\xaf", "\x80"})
    EXPECT_FALSE(is_toml_text(text)) << text;
}

// A file has a line for each key with its help and what it takes, in sections.
TEST(Toml, WritesSectionsAndHelp) {
  EXPECT_THAT(to_toml(file_keys().defaults()),
              testing::StartsWith(
                  "seed = 1                                 # names every stream; an integer 0..99\n"
                  "\n[train]\n"
                  "batch = 256                              # records in a step; an integer 1..65536\n"
                  "schedule = \"linear\"                      # how the rate falls; linear or cosine\n"
                  "\n[model]\n"
                  "dropout = \"auto\"                         # share of units; auto or a number 0..0.95\n"));
}

// Tables, dotted keys and inline tables all name the same key.
TEST(Toml, ReadsEverySpelling) {
  for (const char* text : {"[train]\nbatch = 8\n", "train.batch = 8\n", "train = { batch = 8 }\n"}) {
    const auto config = read(text);
    ASSERT_TRUE(config.ok()) << config.error().message();
    EXPECT_EQ(config->batch, 8U);
  }
}

// Mistakes are refused with file, line and column, and name what would have been right.
TEST(Toml, RefusesWithPlace) {
  const struct {
    const char* text;
    const char* where;
    const char* names;
  } cases[] = {
      {"seed = 1\n[train]\nbach = 3\n", "my.toml:3:1", "'train.batch'"},
      {"[trian]\nbatch = 3\n", "my.toml:1:2", "[train]; 'gossamer train --keys' lists all keys"},
      {"[train]\nbatch = 0\n", "my.toml:2:9", "an integer 1..65536"},
      {"[train]\nbatch = \"8\"\n", "my.toml:2:9", "got the text \"8\"; expected an integer 1..65536"},
      {"[train]\nbatch = [8]\n", "my.toml:2:9", "an array"},
      {"[train]\nbatch = 1979-05-27\n", "my.toml:2:9", "a date or time"},
      {"[train]\nbatch = true\n", "my.toml:2:9", "'true'"},
      {"[train]\nschedule = 3\n", "my.toml:2:12", "got the integer 3; expected linear or cosine"},
      {"[train\nbatch = 3\n", "my.toml:1:", "as TOML"},
      {"[train]\nbatch = 3\nbatch = 4\n", "my.toml:3:", "mend the line"},
  };
  for (const auto& [text, where, names] : cases) {
    const auto config = read(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(config.error().where, HasSubstr(where)) << text;
    EXPECT_THAT(config.error().message(), HasSubstr(names)) << text;
  }
}

// Claim: a key of many parts is refused by its line, however many they are. One of 201 is unknown. Deep
// values are refused, too: with keys of many parts in each they would be deeper still.
TEST(Toml, RefusesWhatTakesTheStack) {
  for (const std::size_t dots : {std::size_t{200}, std::size_t{201}, std::size_t{20'000}}) {
    std::string text = "seed = 1\na";
    for (std::size_t i = 0; i < dots; ++i) text += ".a";
    const auto config = read(text + " = 1\n");
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.error().got, dots > 200 ? "a line of " + std::to_string(dots) + " dots" : "") << dots;
    EXPECT_THAT(config.error().where, HasSubstr("my.toml:2:1"));
  }
  std::string key = "a";
  for (int i = 0; i < 199; ++i) key += ".a";
  for (const int levels : {6, 100, 20'000}) {
    std::string text = "x = [";
    for (int i = 0; i < levels; ++i) text += "\n{" + key + " = [";
    for (int i = 0; i < levels; ++i) text += "]}";
    const auto config = read(text + "]\n");
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.error().what == "cannot read this as TOML", levels > 6) << config.error().message();
  }
}

// Claim: a text that is taken can be read again from the file that is written with it.
TEST(Toml, TakesNoTextThatItCannotRead) {
  EXPECT_TRUE(is_toml_text(std::string(180, '.')));
  EXPECT_FALSE(is_toml_text(std::string(181, '.')));
  EXPECT_TRUE(
      parse_toml("[data]\ntrain = \"" + std::string(180, '.') + "\"  # a text; 0.5..1.5\n", "t").ok());
}

// A file of an older program is read where its removed keys have the value that all runs have now. Any other
// value is refused with its place and by name. Neither such a key nor its section is written.
TEST(Toml, ReadsRemovedKeysAtTheirDefault) {
  const auto config = read("[train]\nparts = 1\nbatch = 8\n[old]\nmode = \"auto\"\nfast = true\n");
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(*config, (File{.batch = 8}));
  EXPECT_THAT(to_toml(file_keys().values(*config)), Not(HasSubstr("old")));
  for (const auto& [text, message] :
       {std::pair("[train]\nparts = 2\n",
                  "my.toml:2:1: the key 'train.parts' was removed: got '2'; expected "
                  "nothing: all runs do what its value 1 said; leave train.parts out: "
                  "they gained nothing"),
        {"[old]\nmode = \"fast\"\n", "my.toml:2:1: the key 'old.mode' was removed: got 'fast'"},
        {"[old]\nfast = [true]\n", "my.toml:2:1: the key 'old.fast' was removed: got 'an array'"},
        {"[old]\nslow = true\n", "my.toml:2:1: there is no key 'old.slow'"}})
    EXPECT_THAT(read(text).error().message(), testing::StartsWith(message));
}

// Any text is read as a tree of values with their places, tables in the order of their names.
TEST(Toml, ReadsTrees) {
  const auto table = parse_toml("b = [1, 2.5]\na = true\n[[c]]\nd = \"x\"\n", "t.toml");
  ASSERT_TRUE(table.ok()) << table.error().message();
  ASSERT_EQ(table->size(), 3U);
  EXPECT_EQ((*table)[0].name, "a");
  EXPECT_EQ(*(*table)[0].value.as<bool>(), true);
  EXPECT_EQ((*table)[0].where, "t.toml:2:1");
  EXPECT_EQ((*table)[0].value.where, "t.toml:2:5");
  const auto& numbers = *(*table)[1].value.as<std::vector<TomlValue>>();
  EXPECT_EQ(*numbers[0].as<std::int64_t>(), 1);
  EXPECT_EQ(*numbers[1].as<double>(), 2.5);
  const auto& inner = *(*(*table)[2].value.as<std::vector<TomlValue>>())[0].as<TomlTable>();
  EXPECT_EQ(*inner[0].value.as<std::string>(), "x");
  EXPECT_EQ(describe((*table)[1].value), "an array");
  EXPECT_EQ(describe(numbers[1]), "the number 2.5");
}

}  // namespace
}  // namespace gossamer::settings
