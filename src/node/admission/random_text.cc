// SPDX-License-Identifier: Apache-2.0
#include "node/admission/random_text.h"

#include <cstring>

#include "base/check.h"
#include "host/grpc/certificates.h"

namespace gossamer::node {

std::string random_bytes(std::size_t count) {
  const auto bytes = host::random_secret(count);
  CHECK(bytes.ok(), bytes.error().message());  // a system without a source of chance cannot run TLS either
  return *bytes;
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  const std::string bytes = random_bytes(sizeof(seed));
  std::memcpy(&seed, bytes.data(), sizeof(seed));
  return seed;
}

}  // namespace gossamer::node
