// SPDX-License-Identifier: Apache-2.0
#include "commands/records/json_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Claim: elements that are no objects are not sent through a command that makes no records of them.
TEST(ArrayShape, LooksAtTheElements) {
  const auto fix = [](std::string_view begin) { return array_shape({.begin = begin, .path = "f"}).fix; };
  EXPECT_THAT(fix(R"([{"text": "a"}])"), HasSubstr("jq -c '.[]' < f"));
  EXPECT_THAT(fix(R"([["it purrs", "cat"], ["it barks", ["dog"]]])"),
              HasSubstr("{text: .[0], labels: ([.[1]] | flatten)}"));
  EXPECT_THAT(fix(R"([["cat", "it purrs"]])"), HasSubstr("{text: .[1], labels: ([.[0]] | flatten)}"));
  EXPECT_THAT(fix(R"([[["cat", "x]"], "it purrs"]])"),
              HasSubstr("the text is the second of each two, such as "
                        "'it purrs'"));
  for (const char* other :
       {R"(["it purrs"])", "[1]", R"([["a", "b", "c"]])", R"([["a", 3]])", "[[[], []]]", "[[["}) {
    EXPECT_THAT(fix(other), HasSubstr("have to be objects")) << other;
    EXPECT_THAT(fix(other), Not(HasSubstr("jq"))) << other;
  }
}

// Claim: objects over several lines, and an object that holds the records, are named with what makes lines of
// them. A line that is an object, and one that is no JSON, are left to the reader.
TEST(ObjectShape, MakesLines) {
  const auto fix = [](std::string_view begin, bool whole = true) {
    const auto shape = object_shape({.begin = begin, .path = "f", .whole = whole});
    return shape ? shape->fix : "";
  };
  EXPECT_THAT(fix("{\n  \"text\": \"a\",\n  \"spans\": [{\"x\": 1}]\n}\n{\n"), HasSubstr("jq -c . < f"));
  EXPECT_THAT(fix("{\n  \"text\": \"a", false), HasSubstr("jq -c . < f"));
  EXPECT_THAT(fix("{\n  \"title\": \"a\",\n  \"n\": {\"text\": [{}]}\n}\n"), HasSubstr("jq -c . < f"));
  EXPECT_THAT(fix("{\n \"v\": 1, \"my data\": [\n {\"text\"", false),
              HasSubstr(R"(jq -c '.["my data"][]' < f)"));
  EXPECT_THAT(fix(R"({"data": [{"text": "a"}]})"), HasSubstr(R"(jq -c '.["data"][]' < f)"));
  // A text may stand behind what is looked at.
  EXPECT_EQ(fix(R"({"data": [{"text": "a"}, {"te)", false), "");
  for (const char* ours : {"{\"tags\": [{\"a\": 1}]}\n{\"tags\": []}\n", "{broken, \n{\"text\": \"a\"}\n",
                           "{\"text\": \"a\", \n{\"text\": \"b\"}\n", R"({"text": "a", "x": [{}]})",
                           "{\"text\": \"a", R"({"a": [{}], "b": [{}]})", R"({"data": ["a", {}]})"})
    EXPECT_EQ(fix(ours), "") << ours;
}

}  // namespace
}  // namespace gossamer::commands
