// SPDX-License-Identifier: Apache-2.0
//
// How the labels of a record stand in one cell of a table. It is one alone, several with a separator between,
// or a list as JSON or Python writes it. A command that splits a list at its commas would make wrong labels.
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace gossamer::commands {

struct LabelCells {
  enum class Form {
    kOne,         // a cell is a label
    kSeparated,   // labels with `separator` between
    kJsonList,    // ["cat", "pet"]
    kPythonList,  // ['cat', 'pet']
    kOther,       // lists that are not known or hold more than labels, or some cells are lists and some not
  };
  Form form = Form::kOne;
  char separator = 0;   // of kSeparated
  bool commas = false;  // of kOne: commas stand in cells, but are taken for a part of the label
};

// Looks at the cells of a column of labels. Commas with a blank behind them, as in "Dallas, TX", separate
// only where pieces come again. At least half of such cells must have a piece that another cell has at
// another place.
[[nodiscard]] LabelCells look_at_labels(std::span<const std::string> cells);

// What gives the list of labels of row `r` in Python. Requires another form than kOther.
[[nodiscard]] std::string labels_in_python(const LabelCells& cells, std::size_t column);
// "split at '|'", for people.
[[nodiscard]] std::string describe(const LabelCells& cells);

}  // namespace gossamer::commands
