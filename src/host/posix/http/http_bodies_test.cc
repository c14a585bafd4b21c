// SPDX-License-Identifier: Apache-2.0
//
// Bodies that nobody takes: packed ones, and those for what is not the endpoint.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

#include "base/check.h"
#include "host/posix/http/http_server.h"
#include "host/posix/http/test_clients.h"

namespace gossamer::host {
namespace {

constexpr long kMostKilobytes = 50'000;  // by which a test lets this process grow

// The most memory that this process has had.
long peak_kilobytes() {
  rusage used{};
  CHECK(::getrusage(RUSAGE_SELF, &used) == 0, errno);
  return used.ru_maxrss;
}

// So many MiB of zeros.
std::string bomb(httplib::detail::compressor& packer, std::size_t mebibytes) {
  const std::string some(std::size_t{1} << 20, '\0');
  std::string packed;
  for (std::size_t i = 1; i <= mebibytes; ++i) {
    CHECK(
        packer.compress(some.data(), some.size(), i == mebibytes, [&packed](const char* bytes, size_t size) {
          packed.append(bytes, size);
          return true;
        }));
  }
  return packed;
}

std::string begin_of(std::string_view method, std::string_view path, std::string_view fields) {
  return fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n{}\r\n", method, path, fields);
}

// Claim: a body that is packed is refused wherever it goes, and is not unpacked.
TEST(HttpBodies, BombsStayPacked) {
  constexpr std::size_t kMebibytes = 100;
  httplib::detail::brotli_compressor brotli;
  httplib::detail::gzip_compressor gzip;
  const std::map<std::string, std::string> bombs = {{"br", bomb(brotli, kMebibytes)},
                                                    {"gzip", bomb(gzip, kMebibytes)}};
  const long before = peak_kilobytes();
  serve_stranger({}, [&bombs](int port) {
    for (const auto& [coding, packed] : bombs) {
      for (const char* method : {"POST", "PUT"}) {
        for (const char* path : {"/nothing", "/page", "/echo"}) {
          const Stranger stranger(port);
          ASSERT_TRUE(stranger.send(
              begin_of(method, path,
                       fmt::format("Content-Encoding: {}\r\nContent-Length: {}\r\n", coding, packed.size())) +
              packed));
          EXPECT_TRUE(stranger.rest().starts_with("HTTP/1.1 415 ")) << coding << method << path;
        }
      }
    }
  });
  EXPECT_LT(peak_kilobytes() - before, kMostKilobytes);
}

// Claim: the refusal of a packed body waits for no byte of it.
TEST(HttpBodies, PackedBodyIsNotRead) {
  serve_stranger({.timeout = from_seconds(300)}, [](int port) {
    const Stranger stranger(port);
    stranger.give_up_after(30);
    ASSERT_TRUE(stranger.send(begin_of("POST", "/echo", "Content-Encoding: br\r\nContent-Length: 1000\r\n")));
    EXPECT_TRUE(stranger.rest().starts_with("HTTP/1.1 415 "));
  });
}

// Claim: a body in chunks without end is gathered nowhere, with or without an endpoint. Its sender has its
// reply before it has sent it all.
TEST(HttpBodies, EndlessChunks) {
  const long before = peak_kilobytes();
  HttpOptions pages_alone = options_of();
  pages_alone.endpoint = "";
  const std::string chunk = "100000\r\n" + std::string(std::size_t{1} << 20, 'x') + "\r\n";
  constexpr int kMostChunks = 300;
  for (const HttpOptions& options : {pages_alone, options_of()}) {
    const auto server = HttpServer::start(options);
    ASSERT_TRUE(server.ok());
    for (const auto& [method, path, status] : {std::tuple("POST", "/nothing", "404"),
                                               {"POST", "/page", "405"},
                                               {"PUT", "/page", "405"},
                                               {"PATCH", "/echo", "40"}}) {
      const Stranger stranger((*server)->port());
      ASSERT_TRUE(stranger.send(begin_of(method, path, "Transfer-Encoding: chunked\r\n")));
      int sent = 0;
      while (sent < kMostChunks && stranger.send(chunk)) ++sent;
      EXPECT_LT(sent, kMostChunks) << method << path;
      EXPECT_TRUE(stranger.rest().starts_with(fmt::format("HTTP/1.1 {}", status))) << method << path;
    }
  }
  EXPECT_LT(peak_kilobytes() - before, kMostKilobytes);
}

// Claim: after a small body that nobody takes, the connection goes on with the next request. After a large
// one, and one in another form, it ends, and nothing of the body passes for a request.
TEST(HttpBodies, NextRequest) {
  const std::string next = "GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const auto server = HttpServer::start(options_of({.max_body_bytes = 200}));
  ASSERT_TRUE(server.ok());
  const auto replies = [&](std::string_view fields, const std::string& body) {
    const Stranger stranger((*server)->port());
    EXPECT_TRUE(stranger.send(begin_of("POST", "/nothing", fields) + body + next));
    return stranger.rest();
  };
  for (const std::string& each :
       {replies("Content-Length: 3\r\n", "abc"), replies("Content-Length: 200\r\n", std::string(200, 'x')),
        replies("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        replies("Expect: 100-continue\r\nContent-Length: 3\r\n", "abc")}) {
    EXPECT_EQ(count(each, "HTTP/1.1 404 "), 1U) << each;
    EXPECT_TRUE(each.ends_with("fixed")) << each;
  }
  for (const std::string& each :
       {replies("Content-Length: 201\r\n", std::string(201, 'x')),
        replies("Expect: 100-continue\r\nContent-Length: 201\r\n", ""),
        replies("Transfer-Encoding: chunked\r\n", "C350\r\n" + std::string(50'000, 'x') + "\r\n0\r\n\r\n"),
        replies("Transfer-Encoding: chunked\r\n", "3;x\r\nabc\r\n0\r\n\r\n")}) {
    EXPECT_TRUE(each.starts_with("HTTP/1.1 404 ")) << each;
    EXPECT_EQ(count(each, "HTTP/1.1 "), 1U) << each;
  }
}

// Claim: a client that goes on slowly with a body that nobody takes, after its reply, holds up no request.
TEST(HttpBodies, DroppedBodyIsNoWork) {
  serve_stranger({.max_connections = 1, .timeout = from_seconds(300)}, [](int port) {
    const Stranger slow(port);
    ASSERT_TRUE(slow.send(begin_of("POST", "/nothing", "Content-Length: 100\r\n")));
    slow.await("\r\n\r\n");
    httplib::Client http("127.0.0.1", port);
    // The first is at work until the server has seen that its answer is written. Nothing tells a client when
    // that is, so it asks again.
    int tries = 500;
    while (http.Post("/echo", "x", "text/plain")->status != 200 && --tries > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_GT(tries, 0);
  });
}

}  // namespace
}  // namespace gossamer::host
