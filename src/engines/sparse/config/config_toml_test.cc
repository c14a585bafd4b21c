// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/config_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/sparse/config/presets.h"

namespace gossamer::engine {
namespace {

using ::testing::HasSubstr;

Result<TrainConfig> read(std::string_view text) {
  TrainConfig config;
  auto settings = parse_toml(text, "my.toml");
  if (!settings.ok()) return settings.error();
  if (auto done = apply_settings(config, *settings); !done.ok()) return done.error();
  return config;
}

// Texts of to_toml read back to an equal config, for defaults and for values that need quoting.
TEST(ConfigToml, RoundTrips) {
  TrainConfig config;
  auto back = read(to_toml(config));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, config);

  config.seed = 123456789;
  config.data.train = "a \"b\\c\" \n\x7f\xc3\xa9.txt";
  config.data.weighting = Weighting::kL2;
  config.model.hidden.reset();
  config.model.dropout = 0.1 + 0.2;
  config.train.epochs = 7.5;
  config.train.lr = 1e-5;
  config.optimizer.epsilon = 1e-30;
  config.predict.instances = false;
  back = read(to_toml(config));
  ASSERT_TRUE(back.ok()) << back.error().message() << "\n" << to_toml(config);
  EXPECT_EQ(*back, config);
}

// Tables, dotted keys and inline tables all name the same key.
TEST(ConfigToml, ReadsEverySpelling) {
  for (const char* text : {"[train]\nbatch = 8\n", "train.batch = 8\n", "train = { batch = 8 }\n"}) {
    auto config = read(text);
    ASSERT_TRUE(config.ok()) << config.error().message();
    EXPECT_EQ(config->train.batch, 8U);
  }
}

// Mistakes are refused with file, line and column, and name what would have been right.
TEST(ConfigToml, RefusesWithPlace) {
  const struct {
    const char* text;
    const char* where;
    const char* names;
  } cases[] = {
      {"seed = 1\n[train]\nbach = 3\n", "my.toml:3:1", "'train.batch'"},
      {"[trian]\nbatch = 3\n", "my.toml:1:2", "[train]"},
      {"[train]\nbatch = 0\n", "my.toml:2:9", "an integer 1..65536"},
      {"[train]\nbatch = \"8\"\n", "my.toml:2:9", "an integer 1..65536"},
      {"[train]\nbatch = [8]\n", "my.toml:2:9", "an integer 1..65536"},
      {"[train]\nschedule = 3\n", "my.toml:2:12", "linear, cosine or constant"},
      {"[train\nbatch = 3\n", "my.toml:1:", ""},
      {"[train]\nbatch = 3\nbatch = 4\n", "my.toml:3:", ""},
  };
  for (const auto& [text, where, names] : cases) {
    auto config = read(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(config.error().where, HasSubstr(where)) << text;
    EXPECT_THAT(config.error().message(), HasSubstr(names)) << text;
  }
}

// Overrides split at the first '=', so values may hold one.
TEST(ConfigToml, ParsesOverrides) {
  auto setting = parse_override("data.train=a=b.txt");
  ASSERT_TRUE(setting.ok());
  EXPECT_EQ(setting->name, "data.train");
  EXPECT_EQ(setting->text, "a=b.txt");
  EXPECT_FALSE(parse_override("data.train").ok());
  EXPECT_FALSE(parse_override("=x").ok());
}

// Every preset parses and is a valid config.
TEST(Presets, AreValid) {
  for (const Preset& preset : presets()) {
    auto config = read(preset.toml);
    ASSERT_TRUE(config.ok()) << preset.name << ": " << config.error().message();
    EXPECT_TRUE(validate(*config).ok()) << preset.name;
    EXPECT_EQ(find_preset(preset.name), &preset);
  }
  EXPECT_EQ(find_preset("nothing"), nullptr);
}

}  // namespace
}  // namespace gossamer::engine
