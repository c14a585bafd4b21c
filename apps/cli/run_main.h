// SPDX-License-Identifier: Apache-2.0
//
// run_main(): the whole of a program that has these engines. It puts the real machine together and hands it
// to the command that the arguments name. A test program has one engine more.
//
// Thread rule: called once, from main().
#pragma once

#include "commands/engine/engine_list.h"

namespace gossamer::cli {

// Returns the exit status.
[[nodiscard]] int run_main(int argc, char** argv, const commands::EngineList& engines);

}  // namespace gossamer::cli
