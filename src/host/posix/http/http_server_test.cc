// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/http_server.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "host/posix/http/test_clients.h"

// Debian's library is not instrumented, so ThreadSanitizer sees its memory but not its locks.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizer's name
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:libcpp-httplib.so\n"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace gossamer::host {
namespace {

// Claim: the type of a body comes without its parameters, and its encoding beside it, however they are
// written.
TEST(HttpServer, TellsTypeAndCharset) {
  const auto server = HttpServer::start(options_of());
  ASSERT_TRUE(server.ok());
  const auto tell = [](std::span<const HttpRequest> requests) {
    std::vector<HttpReply> replies;
    for (const HttpRequest& request : requests)
      replies.push_back({.content_type = "text/plain", .body = request.content_type + "|" + request.charset});
    return replies;
  };
  serve_while(**server, {[](httplib::Client& http) {
    EXPECT_EQ(http.Post("/echo", "x", "Text/Plain; x=y; Charset=\"ISO-8859-1\"; z=1")->body,
              "text/plain|iso-8859-1");
    EXPECT_EQ(http.Post("/echo", "x", "application/json;charset=UTF-8")->body, "application/json|utf-8");
    EXPECT_EQ(http.Post("/echo", "x", "application/json")->body, "application/json|");
  }},
              tell);
}

// A page that changes is made anew for each request. A server without an endpoint takes no POST.
TEST(HttpServer, PagesThatChange) {
  std::atomic<int> made = 0;
  HttpOptions options;
  options.endpoint = "";
  options.live_pages["/count"] = [&made] {
    return HttpReply{.content_type = "text/plain", .body = std::to_string(++made)};
  };
  const auto server = HttpServer::start(options);
  ASSERT_TRUE(server.ok());
  httplib::Client http("127.0.0.1", (*server)->port());
  for (const char* expected : {"1", "2"}) EXPECT_EQ(http.Get("/count")->body, expected);
  EXPECT_EQ(http.Post("/count", "x", "text/plain")->status, 405);
  EXPECT_EQ(http.Post("/", "x", "text/plain")->status, 404);
  EXPECT_EQ(http.Get("/other")->status, 404);
}

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

// What two readers could understand differently gets one reply, 400, and what follows is nobody's request.
TEST(HttpServer, OneReplyForTwoReaders) {
  serve_stranger({}, [](int port) {
    const std::string begin = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n";
    const std::string next = "GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for (const std::string& request :
         {begin + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          begin + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
          begin + "Transfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\n\r\n",
          begin + "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
          begin + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
          begin + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
          std::string("GET /page HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n"),
          std::string("GET /page HTTP/1.1\nHost: x\n\n")}) {
      const Stranger stranger(port);
      ASSERT_TRUE(stranger.send(request + next));
      const std::string replies = stranger.rest();
      EXPECT_TRUE(replies.starts_with("HTTP/1.1 400 ")) << request << replies;
      EXPECT_EQ(count(replies, "HTTP/1.1 "), 1U) << request << replies;
    }
  });
}

// Requests that follow each other at once are each answered, in order, whatever their bodies look like.
TEST(HttpServer, Pipelined) {
  serve_stranger({}, [](int port) {
    const std::string head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n";
    const Stranger stranger(port);
    ASSERT_TRUE(stranger.send(head + "Content-Length: 4\r\n\r\n\r\n\r\n" + head +
                              "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" + head +
                              "Content-Length: 1\r\nConnection: close\r\n\r\nz" + head));
    const std::string replies = stranger.rest();
    EXPECT_EQ(count(replies, "HTTP/1.1 200 "), 3U) << replies;
    EXPECT_EQ(count(replies, "HTTP/1.1 "), 3U) << replies;
    EXPECT_LT(replies.find("text/plain|\r\n\r\n"), replies.find("text/plain|abcde")) << replies;
    EXPECT_LT(replies.find("text/plain|abcde"), replies.find("text/plain|z")) << replies;
    EXPECT_TRUE(replies.ends_with("text/plain|z")) << replies;
  });
}

// A body that nobody reads ends the connection, and is not taken for the next request.
TEST(HttpServer, UnreadBody) {
  serve_stranger({.max_body_bytes = 10}, [](int port) {
    const Stranger stranger(port);
    ASSERT_TRUE(
        stranger.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n"
                      "GET /page HTTP/1.1\r\nHost: x\r\n\r\n"));
    const std::string replies = stranger.rest();
    EXPECT_TRUE(replies.starts_with("HTTP/1.1 413 ")) << replies;
    EXPECT_EQ(count(replies, "HTTP/1.1 "), 1U) << replies;
  });
}

// The reply to a client that goes on in single bytes.
std::string reply_to_drops(const Stranger& slow) {
  std::atomic<bool> ended = false;
  std::thread drip([&] {
    // Well within each time-out, so that no single wait is long.
    while (!ended && slow.send("x")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  std::string reply = slow.rest();
  ended = true;
  drip.join();
  return reply;
}

// A head has a time for the whole of it, and a size, with or without an end.
TEST(HttpServer, HeadsAreBounded) {
  serve_stranger({.head_timeout = from_milliseconds(200)}, [](int port) {
    const Stranger slow(port);
    ASSERT_TRUE(slow.send("GET /page HTTP/1.1\r\nHost: "));
    EXPECT_TRUE(reply_to_drops(slow).starts_with("HTTP/1.1 408 "));
  });
  serve_stranger({}, [](int port) {
    const Stranger large(port);
    ASSERT_TRUE(large.send("GET /page HTTP/1.1\r\nX: "));
    const std::string some(10'000, 'y');
    std::size_t sent = 0;
    while (sent < (std::size_t{64} << 20) && large.send(some)) sent += some.size();
    EXPECT_LT(sent, std::size_t{64} << 20);
  });
}

// A body in drops has a time for the whole of it.
TEST(HttpServer, SlowBody) {
  serve_stranger({.timeout = from_milliseconds(150)}, [](int port) {
    const Stranger slow(port);
    ASSERT_TRUE(slow.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"));
    EXPECT_TRUE(reply_to_drops(slow).starts_with("HTTP/1.1 408 "));
  });
}

// The same for a body without a pause.
TEST(HttpServer, EndlessBody) {
  serve_stranger({.max_body_bytes = 10, .timeout = from_milliseconds(50)}, [](int port) {
    const Stranger endless(port);
    ASSERT_TRUE(endless.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n"));
    const std::string some(100'000, 'x');
    const std::size_t most = std::size_t{8} << 30;
    std::size_t sent = 0;
    while (sent < most && endless.send(some)) sent += some.size();
    EXPECT_LT(sent, most);
  });
}

// As many connections as may be open, and more, that never end their heads: a page and a request are answered
// all the same, at once, as the oldest of them make room.
TEST(HttpServer, SlowHeadsHoldNobodyUp) {
  serve_stranger({.max_connections = 4, .head_timeout = from_seconds(600), .idle_timeout = from_seconds(600)},
                 [](int port) {
                   std::vector<std::unique_ptr<Stranger>> slow;
                   for (std::size_t i = 0; i < 60; ++i) {
                     slow.push_back(std::make_unique<Stranger>(port));
                     ASSERT_TRUE(slow.back()->send(i % 2 == 0 ? "GET /page HT" : "G"));
                   }
                   httplib::Client http("127.0.0.1", port);
                   for (int i = 0; i < 3; ++i) {
                     const auto page = http.Get("/page");
                     ASSERT_TRUE(page);
                     EXPECT_EQ(page->body, "fixed");
                     const auto reply = http.Post("/echo", "x", "text/plain");
                     ASSERT_TRUE(reply);
                     EXPECT_EQ(reply->body, "text/plain|x");
                   }
                   // Strangers that were let in and have not been shut are served when they go on.
                   ASSERT_TRUE(slow.back()->send("ET /page HTTP/1.1\r\nHost: x\r\n\r\n"));
                   slow.back()->await("fixed");
                 });
}

// Takes descriptors until this process gets no more, and gives all back at its end.
class NoDescriptors {
 public:
  NoDescriptors() {
    CHECK(::getrlimit(RLIMIT_NOFILE, &before_) == 0, errno);
    const rlimit few{.rlim_cur = 200, .rlim_max = before_.rlim_max};
    CHECK(::setrlimit(RLIMIT_NOFILE, &few) == 0, errno);
    for (int taken = 0; (taken = ::dup(STDERR_FILENO)) >= 0;) taken_.push_back(taken);
    CHECK(!taken_.empty());
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() {
    while (!taken_.empty()) give_one();
    CHECK(::setrlimit(RLIMIT_NOFILE, &before_) == 0, errno);
  }
  void give_one() {
    ::close(taken_.back());
    taken_.pop_back();
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

// Claim: where the process has no descriptor left, a client that rests makes room for a new one at once.
TEST(HttpServer, NoDescriptorIsLeft) {
  serve_stranger({.head_timeout = from_seconds(600), .idle_timeout = from_seconds(600)}, [](int port) {
    const std::string get = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";
    std::vector<std::unique_ptr<Stranger>> resting;
    for (int i = 0; i < 3; ++i) {
      resting.push_back(std::make_unique<Stranger>(port));
      resting.back()->give_up_after(10);
      ASSERT_TRUE(resting.back()->send(get));
      resting.back()->await("fixed");
    }
    NoDescriptors none;
    none.give_one();
    const Stranger late(port);
    late.give_up_after(10);
    ASSERT_TRUE(late.send(get));
    late.await("fixed");
    EXPECT_EQ(resting.front()->rest(), "") << "it has rested longest, and was ended";
  });
}

// When as many requests as may be are at work, a page is answered, and a further request is refused at once.
TEST(HttpServer, PagesWhileAllIsBusy) {
  serve_stranger({.max_connections = 2, .timeout = from_seconds(300)}, [](int port) {
    const std::string body_to_come =
        "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    const Stranger first(port);
    const Stranger second(port);
    for (const Stranger* each : {&first, &second}) {
      ASSERT_TRUE(each->send(body_to_come));
      each->await("100 Continue\r\n\r\n");  // from now on it is at work
    }
    httplib::Client http("127.0.0.1", port);
    EXPECT_EQ(http.Get("/page")->body, "fixed");
    const auto refused = http.Post("/echo", "x", "text/plain");
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 503);
    EXPECT_EQ(refused->get_header_value("Retry-After"), "1");
    ASSERT_TRUE(first.send("12345"));
    first.await("12345");
    // The first is at work until the server has seen that its answer is written.
    int tries = 500;
    while (http.Post("/echo", "x", "text/plain")->status != 200 && --tries > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_GT(tries, 0);
  });
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
