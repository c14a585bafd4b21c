// SPDX-License-Identifier: Apache-2.0
//
// The real Network (host/api/network.h). Each connection is a bidirectional gRPC stream over a TCP connection
// of its own; its messages are frames passed on by reference. With credentials every connection is mutual
// TLS, and both ends must hold a certificate of the run's own authority. Without credentials nothing is
// proven and nothing hidden.
//
// Sockets of the control lane use cubic, those of the bulk lane BBR where this process may choose it
// (docs/protocols/link.md says what each costs). Where it may not, connections work with the system's choice.
//
// Events come from gRPC's threads, and from within ask(). Thread rule: any thread, but the sink must not call
// the destructor, connect(), close() or ask(). These free what gRPC must not free on its own threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/api/network.h"

namespace gossamer::host {

// What the answerer of a question must show: a certificate of the authority, or nothing. kNone is for a
// question that holds no secret, with an answer that is no more than a hint. It can be asked while this
// machine's clock is so wrong that no certificate holds. A network with kNone only asks.
enum class Proof : std::uint8_t { kCertificate, kNone };

// Credentials as PEM texts. The certificate's common name is the PeerName that others see. A stranger has
// only the authority: it may ask, and must not listen.
struct NetworkCredentials {
  std::string authority;    // the run's certificate authority
  std::string certificate;  // ours, signed by it
  std::string key;
  Proof proof = Proof::kCertificate;
};

// Every certificate of a run is valid for this DNS name, because nodes have no fixed host names. The common
// name says which node a peer is.
inline constexpr const char* kCertificateHost = "node.gossamer";
// The DNS name of one certificate alone, the one with the common name `name`.
[[nodiscard]] std::string certificate_host(const std::string& name);

[[nodiscard]] std::unique_ptr<Network> make_grpc_network(std::optional<NetworkCredentials> credentials,
                                                         NetworkSink sink);

}  // namespace gossamer::host
