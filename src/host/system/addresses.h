// SPDX-License-Identifier: Apache-2.0
//
// The addresses of a name, as the operating system's sockets take them. Thread rule: any thread.
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

// Of `at`, with its port; not empty. Looks names up, which blocks. kFailed: the name is not found.
[[nodiscard]] Result<Addresses> addresses_of(const Endpoint& at, AddressUse use);

}  // namespace gossamer::host
