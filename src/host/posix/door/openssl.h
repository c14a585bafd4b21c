// SPDX-License-Identifier: Apache-2.0
//
// Owning pointers for OpenSSL's objects, and its last error as one of ours. Thread rule: plain values.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <string>

#include "base/result.h"

namespace gossamer::host {

template <auto kFree>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;

// OpenSSL's own words for its last error; forgets it and all others.
[[nodiscard]] inline std::string openssl_words() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

// What `write` writes into a BIO; empty if it does not return 1.
template <class Write>
[[nodiscard]] std::string pem(Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || write(bio.get()) != 1) return {};
  const char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}
[[nodiscard]] inline std::string pem_of(X509* certificate) {
  return pem([certificate](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

}  // namespace gossamer::host
