// SPDX-License-Identifier: Apache-2.0
//
// The proof that a process is a node of a run: PEM texts of the run's own certificate authority. Thread rule:
// plain values.
#pragma once

#include <cstdint>
#include <string>

namespace gossamer::host {

// What the answerer of a question must show: a certificate of the authority, or nothing. kNone is for a
// question that holds no secret, with an answer that is no more than a hint. It can be asked while this
// machine's clock is so wrong that no certificate holds. A network with kNone only asks.
enum class Proof : std::uint8_t { kCertificate, kNone };

// Credentials as PEM texts. The certificate's common name is the PeerName that others see. A stranger has
// only the authority: it may ask what strangers may, and must not listen.
struct NetworkCredentials {
  std::string authority;    // the run's certificate authority
  std::string certificate;  // ours, signed by it
  std::string key;
  Proof proof = Proof::kCertificate;

  [[nodiscard]] bool of_stranger() const { return certificate.empty() || proof == Proof::kNone; }
};

// Every certificate of a run is valid for this DNS name, because nodes have no fixed host names. The common
// name says which node a peer is.
inline constexpr const char* kCertificateHost = "node.gossamer";
// The DNS name of one certificate alone, the one with the common name `name`.
[[nodiscard]] inline std::string certificate_host(const std::string& name) { return name + ".gossamer"; }

}  // namespace gossamer::host
