// SPDX-License-Identifier: Apache-2.0
//
// StoreRows: what a store has, for tests that play its part.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/api/store.h"

namespace gossamer::cluster {

using StoreRows = std::map<std::string, std::string>;

// Carries out the changes of a commit.
inline void keep(const std::vector<host::Change>& changes, StoreRows& rows) {
  for (const host::Change& change : changes) {
    if (change.value) {
      rows[change.key] = *change.value;
    } else {
      rows.erase(change.key);
    }
  }
}

}  // namespace gossamer::cluster
