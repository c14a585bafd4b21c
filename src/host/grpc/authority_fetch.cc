// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/authority_fetch.h"

#include <fmt/format.h>
#include <grpc/support/time.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "host/grpc/network.h"
#include "host/grpc/openssl.h"
#include "host/system/addresses.h"
#include "host/system/descriptor.h"

namespace gossamer::host {
namespace {

using Context = std::unique_ptr<SSL_CTX, FreeBy<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, FreeBy<SSL_free>>;

class Deadline {
 public:
  explicit Deadline(Duration timeout)
      : end_(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(timeout.ns, GPR_TIMESPAN))) {}
  // A deadline after the n-th part of the time that is left.
  [[nodiscard]] Deadline share(int n) const {
    const gpr_timespec left = gpr_time_sub(end_, gpr_now(GPR_CLOCK_MONOTONIC));
    return Deadline(from_milliseconds(static_cast<double>(gpr_time_to_millis(left)) / n));
  }
  // Waits until the socket is ready for `events`; false when time is up.
  [[nodiscard]] bool wait(int fd, short events) const {
    for (;;) {
      const int left = gpr_time_to_millis(gpr_time_sub(end_, gpr_now(GPR_CLOCK_MONOTONIC)));
      pollfd entry{.fd = fd, .events = events, .revents = 0};
      const int ready = left <= 0 ? 0 : poll(&entry, 1, left);
      if (ready >= 0) return ready > 0;
      if (errno != EINTR) return true;  // whatever is wrong, the next call on the socket says it
    }
  }

 private:
  gpr_timespec end_;
};

Error failure(const Endpoint& from, const char* what, std::string got, const char* fix) {
  return {.where = to_string(from), .what = what, .got = std::move(got), .fix = fix};
}

Error cannot_connect(const Endpoint& from, int error) {
  return failure(from, "cannot connect", error == ETIMEDOUT ? "no answer in time" : std::strerror(error),
                 "look whether the coordinator runs, and whether a firewall is in between");
}

// A socket that is connected, or why it is not.
Result<Descriptor> connect_one(const Endpoint& from, const addrinfo& address, const Deadline& deadline) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return cannot_connect(from, errno);
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return cannot_connect(from, errno);
  if (!deadline.wait(socket.get(), POLLOUT)) return cannot_connect(from, ETIMEDOUT);
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return cannot_connect(from, error);
  return socket;
}

Result<Descriptor> connect_to(const Endpoint& from, const Addresses& addresses, const Deadline& deadline) {
  Error last = cannot_connect(from, EADDRNOTAVAIL);
  int untried = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) ++untried;
  // An address that swallows what is sent to it must not cost the others their time.
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Result<Descriptor> socket = connect_one(from, *address, deadline.share(untried--));
    if (socket.ok()) return socket;
    last = socket.error();
  }
  return last;
}

Error no_tls(const Endpoint& from, std::string got) {
  return failure(from, "no TLS there", std::move(got),
                 "look whether host and port are the coordinator's, and whether the run uses TLS");
}

Result<void> shake_hands(const Endpoint& from, SSL* session, int fd, const Deadline& deadline) {
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(session);
    if (result == 1) return {};
    const int error = SSL_get_error(session, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      const short events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
      if (!deadline.wait(fd, events)) return no_tls(from, "no answer in time");
      continue;
    }
    if (error == SSL_ERROR_SSL) return no_tls(from, openssl_words());
    return no_tls(from, "the connection was closed");
  }
}

// 0 for a time that cannot be read.
double seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<double>(timegm(&parts)) : 0;
}

ServedCertificates served_in(const SSL* session) {
  ServedCertificates served;
  const STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(session);
  for (int i = 0; i < sk_X509_num(chain); ++i) {  // a null chain has -1
    X509* const certificate = sk_X509_value(chain, i);
    served.push_back({.pem = pem_of(certificate),
                      .fingerprint = fingerprint_of(certificate),
                      .valid_from = seconds_of(X509_get0_notBefore(certificate)),
                      .valid_until = seconds_of(X509_get0_notAfter(certificate))});
  }
  return served;
}

Result<ServedCertificates> take_certificates(const Endpoint& from, int socket, const Deadline& deadline) {
  const Context context(SSL_CTX_new(TLS_client_method()));
  const Session session(context == nullptr ? nullptr : SSL_new(context.get()));
  constexpr std::array<unsigned char, 3> kHttp2{2, 'h', '2'};  // gRPC's servers speak nothing else
  // gRPC's servers take P-256 first: a key of another group would cost a round trip.
  const bool good = session != nullptr && SSL_set_min_proto_version(session.get(), TLS1_2_VERSION) == 1 &&
                    SSL_set1_groups_list(session.get(), "P-256:X25519") == 1 &&
                    SSL_set_alpn_protos(session.get(), kHttp2.data(), kHttp2.size()) == 0 &&
                    SSL_set_tlsext_host_name(session.get(), kCertificateHost) == 1 &&
                    SSL_set_fd(session.get(), socket) == 1;
  if (!good) return failure(from, "cannot start TLS here", openssl_words(), "look at this machine's OpenSSL");
  // The fingerprint is the proof; there is nothing to verify against yet.
  SSL_set_verify(session.get(), SSL_VERIFY_NONE, nullptr);
  if (auto shaken = shake_hands(from, session.get(), socket, deadline); !shaken.ok()) return shaken.error();
  ServedCertificates served = served_in(session.get());
  if (served.empty()) return no_tls(from, "a server without a certificate");
  return served;
}

}  // namespace

std::variant<ServedCertificates, ContactFailure> fetch_certificates(const Endpoint& from, Duration timeout) {
  const Deadline deadline(timeout);
  const Result<Addresses> addresses = addresses_of(from, AddressUse::kReach);
  if (!addresses.ok()) return ContactFailure{ContactStep::kName, addresses.error()};
  const Result<Descriptor> socket = connect_to(from, *addresses, deadline);
  if (!socket.ok()) return ContactFailure{ContactStep::kPort, socket.error()};
  const Result<ServedCertificates> served = take_certificates(from, socket->get(), deadline);
  if (!served.ok()) return ContactFailure{ContactStep::kTls, served.error()};
  return *served;
}

Result<std::string> authority_among(const ServedCertificates& served, const std::string& fingerprint,
                                    const Endpoint& from) {
  const auto found = std::ranges::find(served, fingerprint, &ServedCertificate::fingerprint);
  if (found != served.end()) return found->pem;
  return Error{.kind = ErrorKind::kRefused,
               .where = to_string(from),
               .what = "the server is of another run",
               .got = "an authority with the fingerprint " + served.back().fingerprint,
               .expected = fingerprint,
               .fix = "use a token of the run that is served there, or the address of the token's run"};
}

Result<std::string> fetch_authority(const Endpoint& from, const std::string& fingerprint, Duration timeout) {
  const auto served = fetch_certificates(from, timeout);
  if (const auto* const failure = std::get_if<ContactFailure>(&served)) return failure->error;
  return authority_among(std::get<ServedCertificates>(served), fingerprint, from);
}

}  // namespace gossamer::host
