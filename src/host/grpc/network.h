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

#include <memory>
#include <optional>

#include "host/api/network.h"
#include "host/posix/door/credentials.h"

namespace gossamer::host {

[[nodiscard]] std::unique_ptr<Network> make_grpc_network(std::optional<NetworkCredentials> credentials,
                                                         NetworkSink sink);

}  // namespace gossamer::host
