// SPDX-License-Identifier: Apache-2.0
#include "settings/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace gossamer::settings {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

enum class Shape { kRound, kFlat };

struct Part {
  std::uint64_t rows = 64;
  double skew = 0.5;
  bool operator==(const Part&) const = default;
};

struct Thing {
  std::string name = {};
  Part part = {};
  Shape shape = Shape::kRound;
  std::optional<Shape> other = {};
  std::optional<double> weight = {};
  std::optional<double> hidden = {};
  std::optional<std::size_t> layers = {};
  std::optional<bool> power = {};
  bool open = true;
  Duration pause = from_milliseconds(20);
  std::vector<std::uint32_t> widths = {};
  bool operator==(const Thing&) const = default;
};

std::optional<std::string> set_even(Thing& thing, const Key& /*key*/, std::string_view text) {
  if (text.size() % 2 != 0) return "an even number of letters";
  thing.name = text;
  return std::nullopt;
}

const KeyTable<Thing>& keys() {
  using T = Thing;
  static const KeyTable<Thing> table(
      {.listed_by = "gossamer thing --help", .one = "an option"},
      {{.key = {.name = "name", .help = "of the thing"},
        .get = [](const Thing& thing, const Key&) { return thing.name; },
        .set = set_even},
       key<&T::part, &Part::rows>("part.rows", {.min = 32, .max = 4096, .multiple_of = 32}, "of its part"),
       key<&T::part, &Part::skew>("part.skew", {.max = 0.99}, "of its ids"),
       key<&T::shape>("shape", {.choices = {"round", "flat"}}, "of the thing"),
       key<&T::other>("other", {.choices = {"round", "flat"}, .unset = "drawn"}, "of another"),
       key<&T::weight>("weight", {.max = 9}, "of the thing"),
       key<&T::hidden>("hidden", {.max = 1, .unset = "", .shown = "0"}, "share of it"),
       key<&T::layers>("layers", {.choices = {"0", "2", "4"}, .unset = "drawn"}, "of the thing"),
       key<&T::power>("power", {.choices = {"yes", "no"}, .unset = "drawn"}, "of the thing"),
       key<&T::open>("open", {}, "whether it is"),
       key<&T::pause>("pause_ms", {.max = 1000, .unit = from_milliseconds(1)}, "between two"),
       key<&T::widths>("widths", {.min = 16, .max = 64, .multiple_of = 16}, "of all")},
      {{.name = "part.parts", .value = "1", .why = "they gained nothing"}});
  return table;
}

std::string get(const Thing& thing, std::string_view name) { return keys().get(thing, *keys().find(name)); }

// A key sets its own field, and reads it back. Both ends of a range are inside.
TEST(KeyTable, SetsWhatIsInRange) {
  Thing thing;
  for (const char* word : {"part.rows=4096", "part.rows=32", "part.skew=0.99", "part.skew=0", "name=ab",
                           "shape=flat", "other=flat", "weight=9", "hidden=1", "layers=2", "power=no",
                           "open=false", "pause_ms=2.5", "widths=16,64"}) {
    EXPECT_TRUE(keys().set_word(thing, word).ok()) << word;
  }
  EXPECT_EQ(thing, (Thing{.name = "ab",
                          .part = {.rows = 32, .skew = 0},
                          .shape = Shape::kFlat,
                          .other = Shape::kFlat,
                          .weight = 9,
                          .hidden = 1,
                          .layers = 2,
                          .power = false,
                          .open = false,
                          .pause = Duration{2'500'000},
                          .widths = {16, 64}}));
  EXPECT_EQ(get(thing, "pause_ms"), "2.5");
  EXPECT_EQ(get(thing, "power"), "no");
  EXPECT_EQ(keys().config(keys().values(thing)), thing);
  EXPECT_EQ(keys().config(keys().defaults()), Thing());
}

// A word says that an optional value is unset, where the key has one.
TEST(KeyTable, UnsetsByAWord) {
  Thing thing{.other = Shape::kFlat, .weight = 3, .hidden = 1, .layers = 4, .power = true};
  for (const char* word : {"other=drawn", "weight=auto", "layers=drawn", "power=drawn", "widths=none"})
    EXPECT_TRUE(keys().set_word(thing, word).ok()) << word;
  for (const char* word : {"hidden=", "hidden=auto", "other=auto", "weight=drawn", "shape=drawn"})
    EXPECT_FALSE(keys().set_word(thing, word).ok()) << word;
  EXPECT_EQ(thing, (Thing{.hidden = 1}));
}

// Any other text is refused, says what is expected, and changes nothing.
TEST(KeyTable, RefusesTheRest) {
  Thing thing;
  for (const char* word : {"part.rows=31",
                           "part.rows=48",
                           "part.rows=8192",
                           "part.rows=-32",
                           "part.rows=64x",
                           "part.rows=6.4e1",
                           "part.rows=",
                           "part.rows",
                           "part.skew=1",
                           "part.skew=nan",
                           "part.skew=-0.1",
                           "part.skew= 0.1",
                           "part.skew=inf",
                           "layers=1",
                           "layers=02",
                           "power=true",
                           "open=yes",
                           "name=abc",
                           "pause_ms=1001",
                           "widths=",
                           "widths=16,",
                           "widths=8",
                           "=64",
                           ""}) {
    EXPECT_EQ(keys().set_word(thing, word).error().kind, ErrorKind::kUsage) << word;
  }
  EXPECT_EQ(thing, Thing());
}

// What a key takes is said in the words of its type.
TEST(KeyTable, SaysWhatAKeyTakes) {
  const std::initializer_list<std::pair<const char*, const char*>> expected = {
      {"part.rows", "an integer 32..4096, a multiple of 32"},
      {"part.skew", "a number 0..0.99"},
      {"shape", "round or flat"},
      {"other", "round, flat or drawn"},
      {"weight", "auto or a number 0..9"},
      {"hidden", "a number 0..1"},
      {"layers", "0, 2, 4 or drawn"},
      {"power", "yes, no or drawn"},
      {"open", "true or false"},
      {"pause_ms", "a number 0..1000"},
      {"widths", "none, or up to 8 integers 16..64, multiples of 16, such as 256,128"}};
  for (const auto& [name, text] : expected) EXPECT_EQ(accepted_values(*keys().find(name)), text) << name;
}

// A setting of a file is refused with its place and the help of its key. A word of a command line is refused
// with the command that lists all keys.
TEST(KeyTable, RefusesByPlaceOrByWord) {
  Thing thing;
  EXPECT_EQ(keys().set(thing, {.name = "shape", .text = "x", .where = "a.toml:3:1"}).error().message(),
            "a.toml:3:1: cannot set shape: got 'x'; expected round or flat; shape: of the thing");
  EXPECT_EQ(
      keys().set(thing, {.name = "shap", .text = "x", .where = "a.toml:3:1"}).error().message(),
      "a.toml:3:1: there is no option 'shap'; expected an option such as 'shape'; 'gossamer thing --help' "
      "lists all of them");
  EXPECT_EQ(keys().set_word(thing, "name=odd", "a.toml:3:1").error().message(),
            "a.toml:3:1: cannot set name: got 'odd'; expected an even number of letters; "
            "'gossamer thing --help' lists all options");
  EXPECT_EQ(keys().set_word(thing, "row=64").error().message(),
            "there is no option 'row': got 'row=64'; expected an option such as 'part.rows'; "
            "'gossamer thing --help' lists all options");
}

// A removed key is refused by name wherever it is set, at its default too. The message says what to do.
TEST(KeyTable, RefusesRemovedKeys) {
  Thing thing;
  for (const char* text : {"1", "2"}) {
    const std::string message = std::string("the option 'part.parts' was removed: got '") + text +
                                "'; expected nothing: all runs do what its value 1 said; "
                                "leave part.parts out: they gained nothing";
    EXPECT_EQ(keys().set(thing, {.name = "part.parts", .text = text}).error().message(), message);
    EXPECT_EQ(keys().set_word(thing, std::string("part.parts=") + text).error().message(), message);
    Values values = keys().defaults();
    EXPECT_EQ(values.apply({{"part.parts", text}}).error().message(), message);
  }
  EXPECT_EQ(keys().find("part.parts"), nullptr);
  EXPECT_THAT(help_lines(keys().defaults()), Not(HasSubstr("part.parts")));
}

// Values take settings without the type of the configuration, spelt in one way. Later ones win; a refused one
// ends it.
TEST(Values, ApplySettings) {
  Values values = keys().defaults();
  ASSERT_TRUE(values.apply({{"part.skew", "2.5e-1"}, {"weight", "1.0"}, {"weight", "3"}}).ok());
  EXPECT_EQ(values.text(*keys().find("part.skew")), "0.25");
  EXPECT_EQ(values.text(*keys().find("weight")), "3");
  EXPECT_EQ(values.text(*keys().find("other")), "drawn");
  const auto refused = values.apply({{"weight", "4"}, {"weight", "10"}, {"weight", "5"}});
  EXPECT_THAT(refused.error().expected, HasSubstr("0..9"));
  EXPECT_EQ(values.text(*keys().find("weight")), "4");
  EXPECT_FALSE(values.apply({{"wait", "4"}}).ok());
}

// Help has a line for each key with its value, and the range of a number.
TEST(Values, HelpShowsThem) {
  Thing thing;
  thing.part.rows = 96;
  const std::string help = help_lines(keys().values(thing));
  EXPECT_THAT(help, HasSubstr("  part.rows=96               of its part, 32..4096\n"));
  EXPECT_THAT(help, HasSubstr("  hidden=0                   share of it, 0..1\n"));
  EXPECT_THAT(help, HasSubstr("  other=drawn                of another\n"));
  EXPECT_THAT(help, HasSubstr("  widths=none                of all\n"));
  EXPECT_THAT(help_lines(keys().values(thing), 12), HasSubstr("  hidden=0     share"));
}

// A word splits at the first '=', so texts may hold one.
TEST(ParseSetting, NeedsKeyAndValue) {
  const auto setting = parse_setting("data.train=a=b.txt", "x=1");
  ASSERT_TRUE(setting.ok());
  EXPECT_EQ(setting->name, "data.train");
  EXPECT_EQ(setting->text, "a=b.txt");
  EXPECT_EQ(parse_setting("x=", "x=1")->text, "");
  for (const char* word : {"data.train", "=x", ""})
    EXPECT_THAT(parse_setting(word, "x=1").error().expected, HasSubstr("x=1")) << word;
}

// Values without their type take words of a command line in their order. A refused word changes nothing.
TEST(Values, TakeWords) {
  Values values = keys().defaults();
  const std::vector<std::string> words = {"part.rows=96", "shape=flat", "part.rows=128"};
  ASSERT_TRUE(values.apply_words(words).ok());
  EXPECT_EQ(values.text(*keys().find("part.rows")), "128");
  EXPECT_EQ(values.text(*keys().find("shape")), "flat");
  const Values before = values;
  for (const std::string bad : {"part.rows=33", "part.row=64", "shape"}) {
    const auto refused = values.apply_words({&bad, 1});
    ASSERT_FALSE(refused.ok()) << bad;
    Thing thing;
    EXPECT_EQ(refused.error().message(), keys().set_word(thing, bad).error().message());
  }
  EXPECT_EQ(values, before);
}

}  // namespace
}  // namespace gossamer::settings
