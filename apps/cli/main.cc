// SPDX-License-Identifier: Apache-2.0
//
// The one binary: the program with the product's engines.
#include "apps/cli/run_main.h"
#include "commands/engines.h"

int main(int argc, char** argv) {
  return gossamer::cli::run_main(argc, argv, gossamer::commands::product_engines());
}
