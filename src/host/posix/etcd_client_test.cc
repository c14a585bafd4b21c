// SPDX-License-Identifier: Apache-2.0
//
// TLS and passwords, against a server that says what etcd says. The store's behaviour: etcd_store_test.cc.
#include "host/posix/etcd_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/check.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;

// A key, and a certificate for one address that proves itself.
struct Identity {
  explicit Identity(const std::string& address) : key(EVP_EC_gen("P-256")), certificate(X509_new()) {
    CHECK(key != nullptr && certificate != nullptr);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* const name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("etcd"), -1,
                               -1, 0);
    X509_set_issuer_name(certificate, name);
    const std::string names = "IP:" + address;
    X509_EXTENSION* const extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
    CHECK(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
    CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
  }
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;
  ~Identity() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  // The certificate as a file, by whose path it is trusted.
  [[nodiscard]] std::string file(const std::string& name) const {
    const std::string path = ::testing::TempDir() + "gossamer_etcd_client_" + name + ".pem";
    BIO* const out = BIO_new_file(path.c_str(), "w");
    CHECK(out != nullptr && PEM_write_bio_X509(out, certificate) == 1, path);
    BIO_free(out);
    return path;
  }

  EVP_PKEY* key;
  X509* certificate;
};

// Says what etcd says to one user. Tokens are numbered, and only the newest is good.
class SecureServer {
 public:
  explicit SecureServer(const Identity& identity) : server_(identity.certificate, identity.key) {
    CHECK(server_.is_valid());
    server_.Post(
        "/v3/auth/authenticate", [this](const httplib::Request& request, httplib::Response& response) {
          const auto login = nlohmann::json::parse(request.body);
          EXPECT_FALSE(request.has_header("Authorization"));
          if (login["name"] != "coordinator" || login["password"] != "se:cret") {
            response.status = 400;
            return response.set_content(
                R"({"code":3,"message":"etcdserver: authentication failed, invalid user ID or password"})",
                "application/json");
          }
          response.set_content(fmt::format(R"({{"token":"t{}"}})", ++tokens), "application/json");
        });
    server_.Post("/v3/kv/range", [this](const httplib::Request& request, httplib::Response& response) {
      ++asked;
      if (request.get_header_value("Authorization") == fmt::format("t{}", tokens.load())) {
        return response.set_content(R"({"kvs":[]})", "application/json");
      }
      response.status = 401;
      response.set_content(R"({"code":16,"message":"etcdserver: invalid auth token"})", "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  SecureServer(const SecureServer&) = delete;
  SecureServer& operator=(const SecureServer&) = delete;
  ~SecureServer() {
    server_.stop();
    thread_.join();
  }
  [[nodiscard]] std::string url() const { return fmt::format("https://127.0.0.1:{}", port_); }

  std::atomic<int> tokens = 0;
  std::atomic<int> asked = 0;

 private:
  httplib::SSLServer server_;
  int port_ = 0;
  std::thread thread_;
};

EtcdAccess access_with(const std::string& ca_file) {
  return {.ca_file = ca_file, .name = "coordinator", .password = "se:cret"};
}

std::unique_ptr<EtcdClient> client_of(const std::vector<std::string>& urls, const EtcdAccess& access) {
  auto client = EtcdClient::create(urls, access, from_seconds(2), from_seconds(5));
  CHECK(client.ok(), client.error().message());
  return std::move(*client);
}

// One token serves many requests. One that has become too old is renewed, and the request is asked again.
TEST(EtcdClient, Tokens) {
  const Identity identity("127.0.0.1");
  SecureServer server(identity);
  const auto client = client_of({server.url()}, access_with(identity.file("tokens")));
  for (int i = 0; i < 3; ++i) {
    const EtcdAnswer answer = client->post("/v3/kv/range", nlohmann::json::object());
    ASSERT_TRUE(answer.body) << answer.error.message();
    EXPECT_FALSE(answer.in_doubt);
  }
  EXPECT_EQ(server.tokens, 1);
  EXPECT_EQ(server.asked, 3);
  ++server.tokens;  // the one that the client has is old
  EXPECT_TRUE(client->post("/v3/kv/range", nlohmann::json::object()).body);
  EXPECT_EQ(server.tokens, 3);
  EXPECT_EQ(server.asked, 5);
}

// A wrong password is refused in words, without the password, and nothing is asked.
TEST(EtcdClient, WrongPassword) {
  const Identity identity("127.0.0.1");
  SecureServer server(identity);
  EtcdAccess access = access_with(identity.file("password"));
  access.password = "other-word";
  const EtcdAnswer answer = client_of({server.url()}, access)->post("/v3/kv/range", nlohmann::json::object());
  EXPECT_FALSE(answer.body || answer.in_doubt);
  EXPECT_THAT(answer.error.message(), HasSubstr("the name or the password"));
  EXPECT_EQ(answer.error.message().find("other-word"), std::string::npos);
  EXPECT_EQ(server.asked, 0);
}

// A server that cannot prove who it is gets neither the password nor a request, and the next address is
// asked.
TEST(EtcdClient, WhoIsEtcd) {
  const Identity identity("127.0.0.1");
  const Identity other("127.0.0.1");
  const Identity elsewhere("127.0.0.2");
  SecureServer server(identity);
  SecureServer at_another_address(elsewhere);
  const std::string trusted = identity.file("trusted");
  const auto refused = [](const std::string& url, const std::string& ca_file) {
    const EtcdAnswer answer =
        client_of({url}, access_with(ca_file))->post("/v3/kv/range", nlohmann::json::object());
    EXPECT_FALSE(answer.body || answer.in_doubt) << url << " " << ca_file;
    EXPECT_THAT(answer.error.message(), HasSubstr("does not answer"));
  };
  refused(server.url(), other.file("other"));
  refused(server.url(), "");  // the system's certificates
  refused(at_another_address.url(), elsewhere.file("elsewhere"));
  EXPECT_EQ(server.tokens + at_another_address.tokens, 0);
  const auto client = client_of({at_another_address.url(), server.url()}, access_with(trusted));
  EXPECT_TRUE(client->post("/v3/kv/range", nlohmann::json::object()).body);
}

// A login is one line with a colon. The password may have more of them.
TEST(EtcdAccess, Login) {
  EtcdAccess access;
  ASSERT_TRUE(read_login("coordinator:se:cret\n", access).ok());
  EXPECT_EQ(access.name, "coordinator");
  EXPECT_EQ(access.password, "se:cret");
  for (const char* text : {"", "\n", "name", ":password", "a:b\nc:d"}) {
    const auto read = read_login(text, access);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace gossamer::host
