// SPDX-License-Identifier: Apache-2.0
//
// EtcdAccess: how a coordinator and etcd trust each other. Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gossamer::host {

// What the client shows etcd, and what it checks etcd with.
struct EtcdAccess {
  std::string ca_file = {};  // certificates (PEM) that etcd's is checked with; empty: the system's
  std::string name = {};     // empty: no password
  std::string password = {};
};

// Reads NAME:PASSWORD, and a line end if there is one. kUsage without `where` for any other text, which is
// not shown.
[[nodiscard]] Result<void> read_login(std::string_view text, EtcdAccess& access);

}  // namespace gossamer::host
