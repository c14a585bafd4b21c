// SPDX-License-Identifier: Apache-2.0
//
// Looks up the addresses of a name, in the form that the operating system's sockets take. Thread rule: any
// thread.
#pragma once

#include <netdb.h>

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "host/api/endpoint.h"

namespace gossamer::host {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
// A list: `ai_next` leads on.
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

enum class AddressUse : std::uint8_t { kReach, kListen };

// The addresses of `at`, with its port; at least one. Looks names up, which blocks. kFailed: the name is not
// found.
[[nodiscard]] Result<Addresses> addresses_of(const Endpoint& at, AddressUse use);

}  // namespace gossamer::host
