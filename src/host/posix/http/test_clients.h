// SPDX-License-Identifier: Apache-2.0
//
// For tests of HttpServer: a server that echoes, and clients of it with and without a library.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "host/posix/http/http_server.h"

namespace gossamer::host {

inline HttpOptions options_of(HttpOptions options = {}) {
  options.endpoint = "/echo";
  options.pages = {{"/page", {.body = "fixed"}}};
  return options;
}

inline std::vector<HttpReply> echo(std::span<const HttpRequest> requests) {
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
inline void serve_while(HttpServer& server, const std::vector<std::function<void(httplib::Client&)>>& clients,
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
inline const auto kEcho = [](std::span<const HttpRequest> requests) { return echo(requests); };

// A connection without a library, for what no library sends.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0, errno);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() { ::close(socket_); }
  // Nothing is waited for any longer than so many seconds.
  void give_up_after(time_t seconds) const {
    const timeval most{.tv_sec = seconds, .tv_usec = 0};
    CHECK(::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0, errno);
  }
  // False once the server has ended the connection.
  [[nodiscard]] bool send(std::string_view text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // All that comes until the server ends the connection.
  [[nodiscard]] std::string rest() const {
    std::string text;
    char some[1000];
    for (ssize_t got = 0; (got = ::recv(socket_, some, sizeof(some), 0)) > 0;)
      text.append(some, static_cast<std::size_t>(got));
    return text;
  }
  // One reply without a body.
  void await(std::string_view end) const {
    std::string text;
    char c = 0;
    while (!text.ends_with(end) && ::recv(socket_, &c, 1, 0) == 1) text += c;
    EXPECT_TRUE(text.ends_with(end)) << text;
  }

 private:
  int socket_;
};

inline std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++found;
  return found;
}

// Serves on this thread while a stranger talks on another.
inline void serve_stranger(const HttpOptions& options, const std::function<void(int port)>& talk) {
  auto server = HttpServer::start(options_of(options));
  ASSERT_TRUE(server.ok());
  serve_while(**server, {[&talk, port = (*server)->port()](httplib::Client&) { talk(port); }}, kEcho);
}

}  // namespace gossamer::host
