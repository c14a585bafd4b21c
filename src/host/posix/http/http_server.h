// SPDX-License-Identifier: Apache-2.0
//
// HttpServer: HTTP/1.1 for one owner thread, by cpp-httplib. Its own threads, one per open connection, read
// requests and write replies. Requests that are posted to the endpoint go through a bounded queue to the
// owner, which takes those that wait and answers them together. Fixed pages (is it alive, what is it) are
// answered without the owner.
//
//   auto server = HttpServer::start({.endpoint = "/predict", .pages = {{"/healthz", {.body = "{}"}}}});
//   while (server->serve(32, from_milliseconds(100), answer)) {
//     if (stop) server->close();
//   }
//
// Limits:
// - requests that are read, wait or are answered: beyond them 503. Pages are always answered;
// - open connections: 16 more than such requests. For a further one, the connection is shut that has been
//   idle, or without a whole head, for longest;
// - waiting requests: beyond them 503 with Retry-After;
// - a head: 64 KiB and 100 lines (431), 5 s from its first byte to its last (408);
// - bytes of a body: 413;
// - seconds that a whole body may take (408), and a whole reply (the connection is closed);
// - seconds that a connection may be idle.
//
// A request that two readers could understand differently gets 400, and its connection ends (request_head.h,
// chunk_check.h).
//
// A packed body (Content-Encoding) is refused unread (415). A body for anything but the endpoint is never
// stored: it is dropped after the reply (404, 405), and if it is larger than the limit the connection ends.
//
// Every failure is answered as JSON: {"error": {"what", "where", "got", "expected", "fix"}}, without parts
// that are empty.
//
// Owner: the thread that made it, which alone calls its functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/time.h"

namespace gossamer::host {

struct HttpRequest {
  std::string content_type = {};  // without parameters, lower case
  std::string charset = {};       // of the content type, lower case; empty: none is named
  std::map<std::string, std::string> parameters = {};  // from the query string; the last of a name counts
  std::string repeated = {};                           // a parameter that stands twice; empty: none does
  std::string body = {};
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
};

[[nodiscard]] HttpReply http_error(int status, const Error& error);

struct HttpOptions {
  std::string host = "127.0.0.1";               // a name or an address of this machine
  int port = 0;                                 // 0: a free one
  std::string endpoint = "/";                   // path of POST requests; empty: there are none
  std::map<std::string, HttpReply> pages = {};  // GET requests' replies, by path
  // The same for pages that change. They are called on connections' threads, several at once.
  std::map<std::string, std::function<HttpReply()>> live_pages = {};
  std::size_t max_connections = 256;  // of requests at once
  std::size_t max_waiting = 128;
  std::size_t max_body_bytes = std::size_t{1} << 20;
  Duration timeout = from_seconds(5);       // a whole body may take twice as long, and a whole reply
  Duration head_timeout = from_seconds(5);  // of a whole head
  Duration idle_timeout = from_seconds(2);  // of a connection between two requests
};

class HttpServer {
 public:
  // Listens. kFailed when the address cannot be had.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const HttpOptions& options);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Closes; requests that nobody has answered get 503.
  virtual ~HttpServer() = default;

  [[nodiscard]] virtual int port() const = 0;
  // Waits up to `patience` for requests, then takes up to `most` of those that wait, oldest first. Sends the
  // replies of `answer`, one each in their order. False once the server is closed and every connection done.
  [[nodiscard]] virtual bool serve(
      std::size_t most, Duration patience,
      FunctionRef<std::vector<HttpReply>(std::span<const HttpRequest> requests)> answer) = 0;
  // Takes no new connection and no further request on open ones. Requests that have been sent, or are being
  // sent, are still to be served.
  virtual void close() = 0;

 protected:
  HttpServer() = default;
};

}  // namespace gossamer::host
