// SPDX-License-Identifier: Apache-2.0
#include "host/api/endpoint.h"

#include <fmt/format.h>

#include <charconv>

namespace gossamer::host {

std::string to_string(const Endpoint& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                  : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

bool is_loopback(std::string_view host) {
  const bool ipv4 =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return ipv4 || host == "::1" || host == "localhost";
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  std::uint16_t port = 0;
  bool good = colon != std::string_view::npos;
  if (good) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    good = error == std::errc() && stop == end;
  }
  const bool brackets = host.size() >= 2 && host.starts_with('[') && host.ends_with(']');
  if (brackets) host = host.substr(1, host.size() - 2);
  good = good && !host.empty() && (brackets || host.find(':') == std::string_view::npos) &&
         host.find_first_of(" \t\r\n[]/") == std::string_view::npos;
  if (good) return Endpoint{.host = std::string(host), .port = port};
  return Error{.kind = ErrorKind::kUsage,
               .what = "cannot use the address",
               .got = fmt::format("'{}'", text),
               .expected = "HOST:PORT such as 127.0.0.1:8080 or [::1]:8080; port 0 takes a free one",
               .fix = "write host and port"};
}

}  // namespace gossamer::host
