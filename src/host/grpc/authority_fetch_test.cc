// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/authority_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <variant>
#include <vector>

#include "host/grpc/certificates.h"
#include "host/grpc/network.h"
#include "host/grpc/test_validity.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;

constexpr Duration kTimeout{10'000'000'000};

class AuthorityFetch : public ::testing::Test {
 protected:
  // A served run, with or without TLS: where it is served, and the authority's certificate.
  struct Run {
    std::unique_ptr<Network> network;
    Endpoint at;
    std::string authority;
  };
  static Run serve(bool tls, Lane lane = Lane::kControl) {
    const KeyAndCertificate authority = *make_authority("run", kValid);
    const KeyAndRequest own = *make_request();
    NetworkCredentials credentials{.authority = authority.certificate,
                                   .certificate = *sign_request(authority, own.request, "node-1", kValid),
                                   .key = own.key};
    Run run{.network = make_grpc_network(tls ? std::optional(credentials) : std::nullopt,
                                         [](const NetworkEvent&) {}),
            .at = {},
            .authority = authority.certificate};
    run.at = *run.network->listen({"127.0.0.1", 0}, lane);
    return run;
  }
};

// From the right server, on either lane, comes the authority's certificate, whole.
TEST_F(AuthorityFetch, Found) {
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
    const Run run = serve(true, lane);
    const auto got = fetch_authority(run.at, *fingerprint(run.authority), kTimeout);
    ASSERT_TRUE(got.ok()) << got.error().message();
    EXPECT_EQ(*got, run.authority);
  }
}

// The server's own certificate comes first, the authority with it; each says for how long it holds, whatever
// this machine's clock says of that.
TEST_F(AuthorityFetch, CertificatesAsServed) {
  const Run run = serve(true);
  const auto served = fetch_certificates(run.at, kTimeout);
  ASSERT_TRUE(std::holds_alternative<ServedCertificates>(served));
  const auto& certificates = std::get<ServedCertificates>(served);
  ASSERT_EQ(certificates.size(), 2U);
  EXPECT_EQ(certificates[1].pem, run.authority);
  EXPECT_EQ(certificates[1].fingerprint, *fingerprint(run.authority));
  constexpr double kDay = 24 * 60 * 60;
  for (const ServedCertificate& one : certificates) {
    EXPECT_EQ(one.valid_from, kValid.now_seconds - kDay);
    EXPECT_EQ(one.valid_until, kValid.now_seconds + kValid.days * kDay);
  }
}

// A server of another run is refused, and the message names both fingerprints.
TEST_F(AuthorityFetch, OtherRun) {
  const Run run = serve(true);
  const std::string other = *fingerprint(make_authority("run", kValid)->certificate);
  const auto got = fetch_authority(run.at, other, kTimeout);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(got.error().where, to_string(run.at));
  EXPECT_THAT(got.error().what, HasSubstr("another run"));
  EXPECT_THAT(got.error().got, HasSubstr(*fingerprint(run.authority)));
  EXPECT_EQ(got.error().expected, other);
}

// The error tells how far the attempt came: the name, the connection, TLS.
TEST_F(AuthorityFetch, SaysWhatFailed) {
  const Run plain = serve(false);
  Endpoint closed;
  {
    const Run gone = serve(true);
    closed = gone.at;
  }
  const std::vector<std::pair<Endpoint, ContactStep>> cases{
      {{"no such name", 1}, ContactStep::kName}, {closed, ContactStep::kPort}, {plain.at, ContactStep::kTls}};
  for (const auto& [at, step] : cases) {
    const auto contact = fetch_certificates(at, kTimeout);
    ASSERT_TRUE(std::holds_alternative<ContactFailure>(contact));
    EXPECT_EQ(std::get<ContactFailure>(contact).step, step);
    const auto got = fetch_authority(at, "00", kTimeout);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().kind, ErrorKind::kFailed);
    EXPECT_EQ(got.error().where, to_string(at));
    EXPECT_EQ(got.error().what, std::get<ContactFailure>(contact).error.what);
    EXPECT_FALSE(got.error().got.empty());
    EXPECT_FALSE(got.error().fix.empty());
  }
}

// A server that takes connections and says nothing is given up after the time-out.
TEST_F(AuthorityFetch, SilentServer) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, any, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, any, &size), 0);
  const auto got = fetch_authority({"127.0.0.1", ntohs(address.sin_port)}, "00", from_milliseconds(100));
  ::close(listener);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().what, "no TLS there");
  EXPECT_EQ(got.error().got, "no answer in time");
}

}  // namespace
}  // namespace gossamer::host
