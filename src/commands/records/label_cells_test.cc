// SPDX-License-Identifier: Apache-2.0
#include "commands/records/label_cells.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gossamer::commands {
namespace {

using Form = LabelCells::Form;
using Cells = std::vector<std::string>;

Form form(const Cells& cells) { return look_at_labels(cells).form; }

// Claim: lists of JSON and of Python are told apart, and lists that Python would read wrongly are known by no
// form. So are columns of which some cells are lists.
TEST(LabelCells, KnowsLists) {
  EXPECT_EQ(form({R"(["cat", "pet"])", "", "[]", R"(["it's"])"}), Form::kJsonList);
  EXPECT_EQ(form({"['cat', 'pet']", "[ ]", R"(["it's", 'a\'b'])"}), Form::kPythonList);
  EXPECT_EQ(form({"['cat', 3]", "[1,]"}), Form::kPythonList);
  for (const char* other : {"['cat' 'pet']", "[cat, pet]", "['cat", "['cat'", "('cat', 'pet')", "{\"a\"}",
                            "[,]", "['a', nan]", "['a\\'"})
    EXPECT_EQ(form({other, "['x']"}), Form::kOther) << other;
  for (const char* other : {R"([{"id": 28, "name": "Action"}])", "[true]", R"([["a"]])", "[null]"})
    EXPECT_EQ(form({other, R"(["x"])"}), Form::kOther) << other;
  EXPECT_EQ(form({"['cat']", "cat"}), Form::kOther);
  EXPECT_EQ(form({"['cat' 'pet']", "cat"}), Form::kOther);
  EXPECT_EQ(form({"[1]", "cat"}), Form::kOther);
  EXPECT_EQ(form({"cat", "[other]", "dog"}), Form::kOne);
  EXPECT_EQ(form({"cat", "[...]", "[e]", "[inf]"}), Form::kOne);
  EXPECT_EQ(form({"[e]", "[...]"}), Form::kOther);
  EXPECT_EQ(form({"[1e5, .5, -2]", "['a']"}), Form::kPythonList);
  EXPECT_EQ(form({"cat|dog", "[other]"}), Form::kSeparated);
  EXPECT_EQ(form({"(none)", "{x}"}), Form::kOne);
}

// Claim: a comma with a blank behind it separates where a piece comes again at another place.
TEST(LabelCells, LeavesACommaInALabel) {
  const LabelCells towns = look_at_labels(Cells{"Dallas, TX", "Austin, TX", "Dallas, TX"});
  EXPECT_EQ(towns.form, Form::kOne);
  EXPECT_EQ(describe(towns), "not split at their commas");
  EXPECT_EQ(look_at_labels(Cells{"a, b", "b, c"}).separator, ',');
  EXPECT_EQ(look_at_labels(Cells{"a, b", "b"}).separator, ',');
  EXPECT_EQ(look_at_labels(Cells{"a,b", "c"}).separator, ',');
  EXPECT_EQ(look_at_labels(Cells{"a,b", "c, d", "e,f"}).separator, ',');
  EXPECT_EQ(look_at_labels(Cells{"a, b", "b", "x, y"}).separator, ',');
  EXPECT_EQ(form({"New York, New York", "Austin, Texas"}), Form::kOne);
  EXPECT_EQ(form({"New York, New York", "Austin, Texas", "Dallas,Texas"}), Form::kOne);
  EXPECT_EQ(form({"New York, NY", "Albany, New York", "Dallas, Texas", "Austin, Texas", "Waco, Texas"}),
            Form::kOne);
  EXPECT_EQ(look_at_labels(Cells{"a, b|c"}).separator, '|');
  EXPECT_EQ(describe(look_at_labels(Cells{"a", "b"})), "not split");
}

}  // namespace
}  // namespace gossamer::commands
