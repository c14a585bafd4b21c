// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a small run, and the files that a run leaves. For the tests of this folder; not part
// of the product. Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engines/sparse/config/config.h"
#include "host/api/files.h"

namespace gossamer::commands::testing {

inline sparse_engine::TrainConfig small_run() {
  sparse_engine::TrainConfig config;
  config.data.train = "/data/train.txt";
  config.data.test = "/data/test.txt";
  config.model.hidden = 16;
  config.train.batch = 8;
  config.train.steps = 6;
  config.train.warmup_steps = 1;
  return config;
}

// The files of a directory with their bytes.
inline std::map<std::string, std::string> files_of(host::Disk& disk, const std::string& directory) {
  std::map<std::string, std::string> files;
  const auto names = disk.list(directory);
  EXPECT_TRUE(names.ok()) << names.error().message();
  if (!names.ok()) return files;
  for (const std::string& name : *names) files[name] = *host::read_text(disk, directory + "/" + name);
  return files;
}

}  // namespace gossamer::commands::testing
