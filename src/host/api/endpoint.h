// SPDX-License-Identifier: Apache-2.0
//
// Endpoint: the place where a process listens, as users write it. Thread rule: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gossamer::host {

// `host` is a name or an address, IPv6 without brackets. Port 0 asks for a free port when a process listens
// there.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  auto operator<=>(const Endpoint&) const = default;
};

// Whether a machine reaches only itself by this address or name.
[[nodiscard]] bool is_loopback(std::string_view host);

// HOST:PORT, with brackets around an IPv6 address.
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

// Reads what to_string() writes. Any other text is an error of kind kUsage, without `where`: the caller knows
// it.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace gossamer::host
