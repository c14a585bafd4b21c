// SPDX-License-Identifier: Apache-2.0
//
// Endpoint: where somebody listens, as users write it. Thread rule: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gossamer::host {

// `host` is a name or an address, IPv6 without brackets. Port 0 asks for a free one where somebody will
// listen.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  auto operator<=>(const Endpoint&) const = default;
};

// Whether `host` is an address, or the name, by which a machine reaches nobody but itself.
[[nodiscard]] bool is_loopback(std::string_view host);

// HOST:PORT, with brackets around an IPv6 address.
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

// Understands what to_string() writes. Otherwise an error of kind kUsage without `where`: the caller knows
// it.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace gossamer::host
