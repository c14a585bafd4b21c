// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

// Debian's library is not instrumented, so ThreadSanitizer sees its memory but not its locks.
extern "C" const char* __tsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race:libcpp-httplib.so\n";
}

namespace gossamer::host {
namespace {

HttpOptions options_of(HttpOptions options = {}) {
  options.endpoint = "/echo";
  options.pages = {{"/page", {.body = "fixed"}}};
  return options;
}

std::vector<HttpReply> echo(std::span<const HttpRequest> requests) {
  std::vector<HttpReply> replies;
  for (const HttpRequest& request : requests) {
    const auto top = request.parameters.find("top");
    replies.push_back({.content_type = "text/plain",
                       .body = request.content_type + "|" + request.body +
                               (top == request.parameters.end() ? "" : "|" + top->second)});
  }
  return replies;
}

// Serves on this thread while `clients` run on others; returns when all have ended.
void serve_while(HttpServer& server, const std::vector<std::function<void(httplib::Client&)>>& clients,
                 FunctionRef<std::vector<HttpReply>(std::span<const HttpRequest>)> answer) {
  std::atomic<std::size_t> left = clients.size();
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&left, &client, port = server.port()] {
      httplib::Client http("127.0.0.1", port);
      http.set_keep_alive(true);
      client(http);
      --left;
    });
  }
  while (left > 0) ASSERT_TRUE(server.serve(8, from_milliseconds(5), answer));
  for (std::thread& thread : threads) thread.join();
}
const auto kEcho = [](std::span<const HttpRequest> requests) { return echo(requests); };

// Type, parameters and body reach the owner as they are, and the reply the client; pages need no owner.
TEST(HttpServer, Exchange) {
  auto server = HttpServer::start(options_of());
  ASSERT_TRUE(server.ok()) << server.error().message();
  serve_while(**server, {[](httplib::Client& http) {
    const auto reply = http.Post("/echo?top=3", "b\n\xC3\xA9", "Application/JSON; charset=utf-8");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, "application/json|b\n\xC3\xA9|3");
    EXPECT_EQ(reply->get_header_value("Content-Type"), "text/plain");
    const auto page = http.Get("/page");
    ASSERT_TRUE(page);
    EXPECT_EQ(page->body, "fixed");
  }},
              kEcho);
}

// Every wrong request has its status and an explanation in JSON.
TEST(HttpServer, Failures) {
  auto server = HttpServer::start(options_of({.max_body_bytes = 10}));
  ASSERT_TRUE(server.ok());
  serve_while(**server, {[](httplib::Client& http) {
    const auto expect = [](const httplib::Result& reply, int status, std::string_view part) {
      ASSERT_TRUE(reply) << status;
      EXPECT_EQ(reply->status, status) << reply->body;
      EXPECT_EQ(reply->get_header_value("Content-Type"), "application/json");
      EXPECT_TRUE(reply->body.starts_with(R"({"error":{"what":")")) << reply->body;
      EXPECT_NE(reply->body.find(part), std::string::npos) << reply->body;
    };
    expect(http.Get("/none"), 404, "POST /echo");
    expect(http.Post("/none", "x", "text/plain"), 404, "GET /page");
    expect(http.Get("/echo"), 405, "method");
    expect(http.Put("/page", "x", "text/plain"), 405, "method");
    expect(http.Post("/echo", "12345678901", "text/plain"), 413, "10 bytes");
    const auto chunks = [](std::size_t offset, httplib::DataSink& sink) {
      if (offset < 40) return sink.write("0123456789", 10);
      sink.done();
      return true;
    };
    expect(http.Post("/echo", chunks, "text/plain"), 413, "10 bytes");
    // The beginning of a packed body would pass for a shorter one.
    const httplib::Headers packed = {{"Content-Encoding", "br"}};
    expect(http.Post("/echo", packed, "abc", "text/plain"), 415, "unpacked");
    const auto after = http.Post("/echo", "x", "text/plain");
    ASSERT_TRUE(after);
    EXPECT_EQ(after->body, "text/plain|x");
  }},
              kEcho);
}

// Many clients at once: each gets its own answer, and the owner gets several requests at a time, at most as
// many as asked for.
TEST(HttpServer, ManyClients) {
  constexpr int kClients = 64;
  auto server = HttpServer::start(options_of());
  ASSERT_TRUE(server.ok());
  std::atomic<int> right = 0;
  std::vector<std::function<void(httplib::Client&)>> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([c, &right](httplib::Client& http) {
      for (int i = 0; i < 5; ++i) {
        const std::string body = std::to_string(c) + "/" + std::to_string(i);
        const auto reply = http.Post("/echo", body, "text/plain");
        if (reply && reply->body == "text/plain|" + body) ++right;
      }
    });
  }
  serve_while(**server, clients, [](std::span<const HttpRequest> requests) {
    EXPECT_LE(requests.size(), 8U);
    return echo(requests);
  });
  EXPECT_EQ(right, kClients * 5);
}

// Beyond the bound a request is refused at once, with the time after which to try again.
TEST(HttpServer, BackPressure) {
  auto server = HttpServer::start(options_of({.max_waiting = 2}));
  ASSERT_TRUE(server.ok());
  std::atomic<int> refused = 0;
  std::atomic<int> served = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 5; ++c) {
    clients.emplace_back([&, port = (*server)->port()] {
      httplib::Client http("127.0.0.1", port);
      const auto reply = http.Post("/echo", "x", "text/plain");
      ASSERT_TRUE(reply);
      if (reply->status == 503) {
        EXPECT_EQ(reply->get_header_value("Retry-After"), "1");
        ++refused;
      } else {
        ++served;
      }
    });
  }
  while (refused < 3) std::this_thread::yield();  // nobody is served meanwhile
  while (served < 2) ASSERT_TRUE((*server)->serve(8, from_milliseconds(5), kEcho));
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(refused, 3);
}

// A request that waits when the server is closed is answered; then the server has ended, and its port is
// free.
TEST(HttpServer, CloseFinishesWhatWasSent) {
  auto server = HttpServer::start(options_of({.idle_timeout = from_seconds(1)}));
  ASSERT_TRUE(server.ok());
  const int port = (*server)->port();
  std::thread client([port] {
    httplib::Client http("127.0.0.1", port);
    const auto reply = http.Post("/echo", "last", "text/plain");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->body, "text/plain|last");
  });
  int answered = 0;
  const auto close_first = [&](std::span<const HttpRequest> requests) {
    (*server)->close();
    answered += static_cast<int>(requests.size());
    return echo(requests);
  };
  while ((*server)->serve(8, from_milliseconds(5), close_first)) {
  }
  client.join();
  EXPECT_EQ(answered, 1);
  EXPECT_FALSE((*server)->serve(8, from_milliseconds(5), kEcho));
  EXPECT_TRUE(HttpServer::start(options_of({.port = port})).ok());
}

// Two servers cannot have one port, nor one a foreign address.
TEST(HttpServer, PortInUse) {
  auto server = HttpServer::start(options_of());
  ASSERT_TRUE(server.ok());
  const auto second = HttpServer::start(options_of({.port = (*server)->port()}));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kFailed);
  EXPECT_FALSE(HttpServer::start(options_of({.host = "192.0.2.1"})).ok());
}

}  // namespace
}  // namespace gossamer::host
