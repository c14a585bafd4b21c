// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <memory>

#include "base/check.h"

namespace gossamer {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

Sha256 sha256(const Slices& bytes) {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  for (const Slice& slice : bytes) {
    CHECK(EVP_DigestUpdate(context.get(), slice.bytes().data(), slice.size()) == 1);
  }
  Sha256 hash{};
  CHECK(EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(hash.data()), nullptr) == 1);
  return hash;
}

std::string to_hex(const Sha256& hash) {
  std::string text;
  for (const std::byte byte : hash) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

}  // namespace gossamer
