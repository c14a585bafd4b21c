// SPDX-License-Identifier: Apache-2.0
//
// A simulated machine with all that a NodeHost borrows, for the tests of this folder. Not part of the
// product.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "host/api/files.h"
#include "host/sim/clock.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "run/node_host.h"

namespace gossamer::run::testing {

class CollectingConsole final : public Console {
 public:
  void write(std::string_view more) override { text += more; }
  [[nodiscard]] bool terminal() const override { return false; }
  [[nodiscard]] int columns() const override { return 80; }
  std::string text;
};

struct SimMachine {
  host::SimDisk disk;
  host::SimClock clock;
  host::SimCompute compute{host::SimComputeOptions{.workers = 2}};
  CollectingConsole console;

  // The machine with another disk.
  [[nodiscard]] NodeHost host_with(host::Disk& other) {
    return {.disk = other,
            .clock = clock,
            .compute = compute,
            .kernels = kernels::kernels_for(kernels::best_isa()),
            .console = console};
  }
  [[nodiscard]] NodeHost host() { return host_with(disk); }
  [[nodiscard]] bool said(std::string_view part) const {
    return console.text.find(part) != std::string::npos;
  }
};

inline void write(host::Disk& disk, const std::string& path, std::string_view text) {
  const auto done = host::replace_file(disk, path, text);
  ASSERT_TRUE(done.ok()) << done.error().message();
}

// Numbered records of two classes. Label l has features 3l..3l+2, and one feature of no meaning.
inline std::string two_classes(int records) {
  std::string text = std::to_string(records) + " 10 2\n";
  for (int i = 0; i < records; ++i) {
    const int label = i % 2;
    text += std::to_string(label);
    for (int k = 0; k < 3; ++k) text += " " + std::to_string(3 * label + k) + ":1";
    text += " " + std::to_string(6 + i % 4) + ":2\n";
  }
  return text;
}

}  // namespace gossamer::run::testing
