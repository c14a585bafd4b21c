// SPDX-License-Identifier: Apache-2.0
#include "host/system/addresses.h"

#include <sys/socket.h>

#include <string>

namespace gossamer::host {

Result<Addresses> addresses_of(const Endpoint& at, AddressUse use) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;  // or else each address comes once for each type
  hints.ai_flags = AI_NUMERICSERV | (use == AddressUse::kListen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  if (status == 0) return Addresses(found);
  return Error{.where = to_string(at),
               .what = "cannot find the name",
               .got = ::gai_strerror(status),
               .fix = "look at the name, and at this machine's DNS"};
}

}  // namespace gossamer::host
