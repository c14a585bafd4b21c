// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/grpc/test_validity.h"

namespace gossamer::host {
namespace {

// Two authorities of one name differ in keys, certificates and fingerprints. The fingerprint of a certificate
// is the same however often it is asked for.
TEST(Certificates, AuthoritiesDiffer) {
  const auto a = make_authority("run", kValid);
  const auto b = make_authority("run", kValid);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->key, b->key);
  const auto of_a = fingerprint(a->certificate);
  ASSERT_TRUE(of_a.ok());
  EXPECT_EQ(of_a->size(), 64U);
  EXPECT_EQ(*of_a, *fingerprint(a->certificate));
  EXPECT_NE(*of_a, *fingerprint(b->certificate));
}

// Texts that are no certificate, no request or no authority are refused by name, and so is a request signed
// with another key. None of them crashes. (The network's conformance test shows that good ones are accepted
// and foreign ones refused.)
TEST(Certificates, RefusesGarbage) {
  const auto authority = make_authority("run", kValid);
  const auto request = make_request();
  ASSERT_TRUE(authority.ok() && request.ok());
  const auto good = sign_request(*authority, request->request, "node-1", kValid);
  ASSERT_TRUE(good.ok()) << good.error().message();
  for (const std::string& bad : {std::string(), std::string("x"), *good, request->request.substr(0, 200)}) {
    const auto result = sign_request(*authority, bad, "node-1", kValid);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, ErrorKind::kBadData);
    EXPECT_THAT(result.error().what, testing::HasSubstr("certificate request"));
  }
  EXPECT_FALSE(
      sign_request({.key = "x", .certificate = authority->certificate}, request->request, "n", kValid).ok());
  EXPECT_FALSE(fingerprint(request->request).ok());
}

// Credentials that fit give both names; each way of not fitting is told in its own words.
TEST(Certificates, CredentialsFit) {
  const auto authority = make_authority("run-1", kValid);
  const auto request = make_request();
  ASSERT_TRUE(authority.ok() && request.ok());
  const NetworkCredentials good{.authority = authority->certificate,
                                .certificate = *sign_request(*authority, request->request, "node-7", kValid),
                                .key = request->key};
  const auto names = check_credentials(good, kValid.now_seconds);
  ASSERT_TRUE(names.ok()) << names.error().message();
  EXPECT_EQ(names->authority, "run-1");
  EXPECT_EQ(names->own, "node-7");
  const auto what = [](const NetworkCredentials& bad, double now) {
    const auto result = check_credentials(bad, now);
    return result.ok() ? "nothing" : result.error().message();
  };
  NetworkCredentials other = good;
  other.key = make_request()->key;
  EXPECT_THAT(what(other, kValid.now_seconds), testing::HasSubstr("for another key"));
  other = good;
  other.authority = make_authority("run-1", kValid)->certificate;
  EXPECT_THAT(what(other, kValid.now_seconds), testing::HasSubstr("does not hold"));
  EXPECT_THAT(what(good, kValid.now_seconds + 40 * 86400), testing::HasSubstr("expired"));
  EXPECT_THAT(what(good, kValid.now_seconds - 2 * 86400), testing::HasSubstr("not yet valid"));
  for (std::string NetworkCredentials::* part :
       {&NetworkCredentials::authority, &NetworkCredentials::certificate, &NetworkCredentials::key}) {
    other = good;
    other.*part = "garbage";
    EXPECT_THAT(what(other, kValid.now_seconds), testing::HasSubstr("cannot read"));
  }
}

// A key may have a second certificate, and it says how long it holds.
TEST(Certificates, AnotherForTheSameKey) {
  const auto authority = make_authority("run-1", kValid);
  const auto own = make_request();
  const auto request = request_for(own->key);
  ASSERT_TRUE(request.ok()) << request.error().message();
  const Validity seconds{.now_seconds = kValid.now_seconds + 5, .days = 0, .seconds = 20};
  const auto certificate = sign_request(*authority, *request, "node-17", seconds);
  ASSERT_TRUE(certificate.ok());
  const NetworkCredentials credentials{
      .authority = authority->certificate, .certificate = *certificate, .key = own->key};
  EXPECT_EQ(check_credentials(credentials, kValid.now_seconds)->own, "node-17");
  EXPECT_TRUE(check_credentials(credentials, kValid.now_seconds + 24).ok());
  EXPECT_FALSE(check_credentials(credentials, kValid.now_seconds + 26).ok());
  const auto time = time_of(*certificate);
  ASSERT_TRUE(time.ok());
  EXPECT_EQ(time->signed_at, kValid.now_seconds + 5);
  EXPECT_EQ(time->until, kValid.now_seconds + 25);
  EXPECT_EQ(time_of("garbage").error().kind, ErrorKind::kBadData);
  EXPECT_EQ(request_for("garbage").error().kind, ErrorKind::kBadData);
}

// Claim: the end of a node's own certificate is forgiven where the caller says so. The authority's is not,
// nor a certificate that has not begun, nor one of another authority.
TEST(Certificates, EndedCredentials) {
  constexpr double kDay = 86400;
  const double now = kValid.now_seconds;
  const auto authority = make_authority("run-1", {.now_seconds = now, .days = 100});
  const auto own = make_request();
  const NetworkCredentials good{.authority = authority->certificate,
                                .certificate = *sign_request(*authority, own->request, "node-7", kValid),
                                .key = own->key};
  for (const double days : {0.0, 31.0, 99.0}) {
    const auto names = check_credentials(good, now + days * kDay, Ended::kAccepted);
    ASSERT_TRUE(names.ok()) << days << names.error().message();
    EXPECT_EQ(names->own, "node-7");
  }
  for (const double days : {-2.0, 101.0}) {
    const auto refused = check_credentials(good, now + days * kDay, Ended::kAccepted);
    ASSERT_FALSE(refused.ok()) << days;
    EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  }
  NetworkCredentials other = good;
  other.authority = make_authority("run-1", {.now_seconds = now, .days = 100})->certificate;
  EXPECT_EQ(check_credentials(other, now + 31 * kDay, Ended::kAccepted).error().kind, ErrorKind::kBadData);
  const NetworkCredentials itself{
      .authority = authority->certificate, .certificate = authority->certificate, .key = authority->key};
  EXPECT_TRUE(check_credentials(itself, now, Ended::kAccepted).ok());
  EXPECT_FALSE(check_credentials(itself, now + 101 * kDay, Ended::kAccepted).ok());
}

// Claim: a text that says that it is encrypted is refused at once. Nobody is asked for a password.
TEST(Certificates, EncryptedTexts) {
  const auto authority = make_authority("run-1", kValid);
  const auto own = make_request();
  const std::string certificate = *sign_request(*authority, own->request, "node-7", kValid);
  const auto encrypted = [](std::string text) {
    return text.insert(text.find('\n') + 1,
                       "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC," + std::string(32, 'A') + "\n\n");
  };
  EXPECT_EQ(time_of(encrypted(certificate)).error().kind, ErrorKind::kBadData);
  EXPECT_EQ(sign_request(*authority, encrypted(own->request), "node-7", kValid).error().kind,
            ErrorKind::kBadData);
  const auto proof = [&](const std::string& shown, const std::string& request) {
    return check_key_proof({.authority = authority->certificate, .certificate = shown, .request = request},
                           kValid.now_seconds);
  };
  EXPECT_TRUE(proof(certificate, own->request).ok());
  EXPECT_EQ(proof(encrypted(certificate), own->request).error().kind, ErrorKind::kBadData);
  EXPECT_EQ(proof(certificate, encrypted(own->request)).error().kind, ErrorKind::kBadData);
}

// Secrets have the size asked for and differ.
TEST(Certificates, Secrets) {
  EXPECT_EQ(random_secret(32)->size(), 32U);
  EXPECT_NE(*random_secret(32), *random_secret(32));
}

}  // namespace
}  // namespace gossamer::host
