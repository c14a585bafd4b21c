// SPDX-License-Identifier: Apache-2.0
//
// What a Store holds, as a map to compare. Only tests include it. Thread rule: that of the store.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "host/api/store.h"

namespace gossamer::host {

using Content = std::map<std::string, std::string>;

inline Content content(Store& store) {
  Content found;
  const auto entries = store.load();
  EXPECT_TRUE(entries.ok()) << entries.error().message();
  if (!entries.ok()) return found;
  for (const Entry& entry : *entries) found.emplace(entry.key, entry.value);
  return found;
}

}  // namespace gossamer::host
