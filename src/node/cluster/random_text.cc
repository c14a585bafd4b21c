// SPDX-License-Identifier: Apache-2.0
#include "node/cluster/random_text.h"

#include <fmt/format.h>

#include <random>

namespace gossamer::node {

std::string random_bytes(std::size_t count) {
  std::random_device device;
  std::string bytes(count, '\0');
  for (char& one : bytes) one = static_cast<char>(device() & 0xff);
  return bytes;
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char one : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(one));
  return text;
}

}  // namespace gossamer::node
