// SPDX-License-Identifier: Apache-2.0
//
// EnginePart is what an engine needs beside the program, and how it stands: a module with a library of
// others. `gossamer version` and `gossamer doctor` tell of it. Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>

namespace gossamer::commands {

struct EnginePart {
  enum class State {
    kThere,
    kMissing,  // the engine cannot be used; all else can
    kBroken,   // there, and it cannot be used
  };
  std::string_view name;  // "torch"; lives as long as the program
  State state = State::kMissing;
  std::string version = {};  // of the library, "2.13.0"; empty: it is not there
  std::string found = {};    // for people
  std::string advice = {};   // what to do; empty for kThere
};

}  // namespace gossamer::commands
