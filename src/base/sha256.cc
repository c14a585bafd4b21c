// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <memory>
#include <span>

#include "base/check.h"

namespace gossamer {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class Hashing {
 public:
  Hashing() : context_(EVP_MD_CTX_new()) {
    CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(std::span<const std::byte> bytes) {
    CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  [[nodiscard]] Sha256 end() {
    Sha256 hash{};
    auto* const raw = reinterpret_cast<unsigned char*>(hash.data());
    CHECK(EVP_DigestFinal_ex(context_.get(), raw, nullptr) == 1);
    return hash;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace

Sha256 sha256(const Slices& bytes) {
  Hashing hashing;
  for (const Slice& slice : bytes) hashing.add(slice.bytes());
  return hashing.end();
}

Sha256 sha256(std::string_view bytes) {
  Hashing hashing;
  hashing.add(std::as_bytes(std::span(bytes)));
  return hashing.end();
}

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace gossamer
