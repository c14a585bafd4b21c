// SPDX-License-Identifier: Apache-2.0
//
// The real Network (host/api/network.h). Each connection is a bidirectional gRPC stream over a TCP connection
// of its own; its messages are frames passed on by reference. With credentials every connection is mutual
// TLS, and both ends must hold a certificate of the run's own authority. Without credentials nothing is
// proven and nothing hidden.
//
// A door (host/posix/door) accepts all connections. With credentials, gRPC gets only those whose TLS
// handshake will want a certificate of the run. Strangers ask at the door, which has a small protocol of its
// own. A network of a stranger asks by that protocol, and each connect() of it is refused here.
//
// Sockets of the control lane use cubic, those of the bulk lane BBR where this process may choose it
// (docs/protocols/link.md says what each costs). Where it may not, connections work with the system's choice.
//
// Events come from gRPC's threads, from the door's, and from within ask() and connect(). Thread rule: any
// thread, but the sink must not call the destructor, connect(), close() or ask(). These free what gRPC must
// not free on its own threads.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/result.h"
#include "host/api/network.h"
#include "host/posix/door/credentials.h"

namespace gossamer::host {

class RenewableNetwork : public Network {
 public:
  // Shows another certificate of the same authority in all handshakes from now on. Connections stay as they
  // are; those that others opened before the last kKeptRenewals renewals end. Requires credentials of a node,
  // on both sides of the change. An error says why they are of no use, and nothing has changed then.
  [[nodiscard]] virtual Result<void> renew(NetworkCredentials credentials) = 0;
  static constexpr std::size_t kKeptRenewals = 3;
};

[[nodiscard]] std::unique_ptr<RenewableNetwork> make_grpc_network(
    std::optional<NetworkCredentials> credentials, NetworkSink sink);

}  // namespace gossamer::host
