// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/http_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <httplib.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "host/posix/blocked_signals.h"
#include "host/posix/http/connection_slots.h"
#include "host/posix/http/http_talk.h"

namespace gossamer::host {
namespace {

constexpr int kBacklog = 256;

// Reads requests and writes replies. It neither accepts connections nor waits for their bytes.
class Library final : public httplib::Server {
 public:
  bool serve(httplib::Stream& request, bool last) {
    bool ends = false;
    return process_request(request, last, ends, nullptr);
  }
  // The socket that listens, once it is bound.
  [[nodiscard]] int socket() const { return svr_sock_; }
};

// The content type in lower case, without blanks and quotes.
std::string content_type(const httplib::Request& request) {
  std::string type = request.get_header_value("Content-Type");
  std::erase_if(type, [](char c) { return c == ' ' || c == '\t' || c == '"'; });
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return type;
}

std::string charset_of(std::string_view type) {
  constexpr std::string_view kName = ";charset=";
  const std::size_t at = type.find(kName);
  if (at == std::string_view::npos) return {};
  type.remove_prefix(at + kName.size());
  return std::string(type.substr(0, type.find(';')));
}

void send(httplib::Response& response, const HttpReply& reply) {
  response.status = reply.status;
  response.set_content(reply.body, reply.content_type);
}

// Says why bind() failed, from the errno it left. Looking up a name may leave anything there.
std::string why_no_address(int error) {
  switch (error) {
    case EADDRINUSE: return "a port in use";
    case EACCES: return "a port that needs privileges";
    case EADDRNOTAVAIL: return "an address of another machine";
    default: return "a name that is not known, or no address";
  }
}

// A request that waits for the owner; lives on its connection's thread.
struct Waiting {
  HttpRequest request;
  HttpReply reply;
  bool answered = false;
};

class PosixHttpServer final : public HttpServer {
 public:
  explicit PosixHttpServer(const HttpOptions& options) : options_(options), slots_(options.max_connections) {
    configure();
  }
  ~PosixHttpServer() override {
    if (!acceptor_.joinable()) return;
    close();
    const auto refuse = [this](std::span<const HttpRequest> requests) {
      return std::vector<HttpReply>(requests.size(), overloaded());
    };
    while (serve(options_.max_waiting, from_milliseconds(100), refuse)) {
    }
    acceptor_.join();
  }

  Result<void> listen();
  [[nodiscard]] int port() const override { return port_; }
  bool serve(std::size_t most, Duration patience,
             FunctionRef<std::vector<HttpReply>(std::span<const HttpRequest>)> answer) override;
  void close() override {
    // The acceptor closes the socket once it sees `closed_`, and then its number may be another's.
    const std::lock_guard lock(mutex_);
    if (!closed_.exchange(true)) static_cast<void>(::shutdown(library_.socket(), SHUT_RDWR));
  }

 private:
  void configure();
  void accept_all();
  void post(const httplib::Request& from, httplib::Response& to, const httplib::ContentReader& read);
  [[nodiscard]] bool at_endpoint(const httplib::Request& from) const {
    return !options_.endpoint.empty() && from.path == options_.endpoint;
  }
  [[nodiscard]] HttpReply hand_over(HttpRequest request);
  [[nodiscard]] HttpReply overloaded() const;
  [[nodiscard]] HttpReply too_large() const;
  void explain(const httplib::Request& from, httplib::Response& to) const;

  const HttpOptions options_;
  Library library_;
  ConnectionSlots slots_;
  int port_ = 0;
  std::atomic<bool> closed_ = false;
  std::thread acceptor_;

  std::mutex mutex_;  // of all below
  std::condition_variable arrived_;
  std::condition_variable answered_;
  std::deque<Waiting*> waiting_;
  bool ended_ = false;  // every connection is done
};

void PosixHttpServer::configure() {
  // What a reply tells the client of its connection.
  library_.set_keep_alive_timeout(std::max<time_t>(1, options_.idle_timeout.ns / 1'000'000'000));
  library_.set_payload_max_length(options_.max_body_bytes);
  library_.set_tcp_nodelay(true);  // connections inherit it
  // Not the library's options: with SO_REUSEPORT a second server would silently share the port.
  library_.set_socket_options([](int socket) {
    const int on = 1;
    static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
  });
  for (const auto& [path, reply] : options_.pages) {
    // Paths are patterns there; ours hold no character that means something.
    library_.Get(path, [reply](const httplib::Request&, httplib::Response& to) { send(to, reply); });
  }
  for (const auto& [path, page] : options_.live_pages) {
    library_.Get(path, [&page](const httplib::Request&, httplib::Response& to) { send(to, page()); });
  }
  library_.set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
    const bool known =
        from.method == "GET" || from.method == "HEAD" || (from.method == "POST" && at_endpoint(from));
    if (known) return httplib::Server::HandlerResponse::Unhandled;
    // The library would gather the body before it looks for a handler, and has no limit for one in chunks.
    to.status = 404;
    return httplib::Server::HandlerResponse::Handled;
  });
  library_.set_expect_100_continue_handler([this](const httplib::Request& from, httplib::Response& to) {
    if (from.get_header_value<std::uint64_t>("Content-Length") <= options_.max_body_bytes) return 100;
    if (!at_endpoint(from)) return to.status = 404;
    // The library sends the reply as it is here, whatever is returned.
    send(to, too_large());
    return to.status;
  });
  library_.set_error_handler(
      [this](const httplib::Request& from, httplib::Response& to) { explain(from, to); });
  if (options_.endpoint.empty()) return;
  library_.Post(options_.endpoint, [this](const httplib::Request& from, httplib::Response& to,
                                          const httplib::ContentReader& read) { post(from, to, read); });
}

Result<void> PosixHttpServer::listen() {
  const bool any = options_.port == 0;
  errno = 0;
  port_ = any ? library_.bind_to_any_port(options_.host) : options_.port;
  if (any ? port_ <= 0 : !library_.bind_to_port(options_.host, options_.port)) {
    return Error{.kind = ErrorKind::kFailed,
                 .where = fmt::format("{}:{}", options_.host, options_.port),
                 .what = "cannot listen there",
                 .got = why_no_address(errno),
                 .expected = "an address of this machine and a free port",
                 .fix = "choose another HOST:PORT; port 0 takes a free one"};
  }
  // The library's own backlog is 5: a sixth client that connects at the same moment would wait a second.
  static_cast<void>(::listen(library_.socket(), kBacklog));
  const BlockedSignals blocked;
  acceptor_ = std::thread([this] {
    accept_all();
    slots_.end();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    arrived_.notify_all();
  });
  return {};
}

void PosixHttpServer::accept_all() {
  const auto serve = [this](httplib::Stream& request, bool last) { return library_.serve(request, last); };
  while (!closed_) {
    const int socket = ::accept4(library_.socket(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) {
      slots_.add(socket, [this, serve](ConnectionSlots::Slot& slot) {
        HttpTalk(slot, options_, closed_, serve).run();
      });
    } else if (errno != EINTR && errno != ECONNABORTED && !closed_) {
      // No descriptor or no memory is left, which passes: some connection ends, or is ended. Until then
      // accept() fails at once, again and again.
      slots_.make_room();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  const std::lock_guard lock(mutex_);
  ::close(library_.socket());
}

bool PosixHttpServer::serve(std::size_t most, Duration patience,
                            FunctionRef<std::vector<HttpReply>(std::span<const HttpRequest>)> answer) {
  std::vector<Waiting*> taken;
  std::vector<HttpRequest> requests;
  {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, std::chrono::nanoseconds(patience.ns),
                      [this] { return !waiting_.empty() || ended_; });
    if (waiting_.empty()) return !ended_;
    while (!waiting_.empty() && taken.size() < most) {
      taken.push_back(waiting_.front());
      waiting_.pop_front();
      requests.push_back(std::move(taken.back()->request));
    }
  }
  std::vector<HttpReply> replies = answer(requests);
  CHECK(replies.size() == requests.size(), replies.size(), requests.size());
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      taken[i]->reply = std::move(replies[i]);
      taken[i]->answered = true;
    }
  }
  answered_.notify_all();
  return true;
}

HttpReply PosixHttpServer::hand_over(HttpRequest request) {
  Waiting mine{.request = std::move(request), .reply = {}};
  std::unique_lock lock(mutex_);
  if (waiting_.size() >= options_.max_waiting) return overloaded();
  waiting_.push_back(&mine);
  arrived_.notify_all();
  answered_.wait(lock, [&mine] { return mine.answered; });
  return std::move(mine.reply);
}

void PosixHttpServer::post(const httplib::Request& from, httplib::Response& to,
                           const httplib::ContentReader& read) {
  const std::string type = content_type(from);
  HttpRequest request{.content_type = type.substr(0, type.find(';')), .charset = charset_of(type)};
  for (const auto& [name, value] : from.params) {
    if (!request.parameters.insert_or_assign(name, value).second) request.repeated = name;
  }
  bool large = false;
  const auto take = [&](const char* bytes, std::size_t size) {
    // A body that comes in chunks tells its size at the end. A body that is too large is read and dropped, or
    // the client would be cut off before it has seen why.
    large = large || request.body.size() + size > options_.max_body_bytes;
    if (!large) request.body.append(bytes, size);
    return true;
  };
  const bool whole = read(take);
  if (large || to.status == 413) return send(to, too_large());
  if (!whole) {
    return send(to, http_error(408, {.where = options_.endpoint,
                                     .what = "the body of the request did not arrive",
                                     .got = fmt::format("{} bytes in time", request.body.size()),
                                     .expected = "the whole body",
                                     .fix = "send it without pauses"}));
  }
  to.status = -1;
  send(to, hand_over(std::move(request)));
  if (to.status == 503) to.set_header("Retry-After", "1");
}

HttpReply PosixHttpServer::overloaded() const {
  return http_error(503, {.where = options_.endpoint,
                          .what = "too many requests wait already",
                          .got = fmt::format("{} waiting", options_.max_waiting),
                          .expected = {},
                          .fix = "try again in a second"});
}

HttpReply PosixHttpServer::too_large() const {
  return http_error(413, {.where = options_.endpoint,
                          .what = "the body of the request is too large",
                          .got = fmt::format("more than {} bytes", options_.max_body_bytes),
                          .expected = "a smaller body",
                          .fix = "send fewer queries in one request"});
}

// Replies that the library makes have a status alone.
void PosixHttpServer::explain(const httplib::Request& from, httplib::Response& to) const {
  if (!to.body.empty()) return;
  if (to.status == 413) return send(to, too_large());
  std::vector<std::string> known;
  if (!options_.endpoint.empty()) known.push_back("POST " + options_.endpoint);
  for (const auto& [path, reply] : options_.pages) known.push_back("GET " + path);
  for (const auto& [path, reply] : options_.live_pages) known.push_back("GET " + path);
  const bool page = options_.pages.contains(from.path) || options_.live_pages.contains(from.path);
  if (to.status == 404 && (page || at_endpoint(from))) {
    to.set_header("Allow", page ? "GET, HEAD" : "POST");
    to.status = 405;
  }
  Error error{.where = from.path,
              .what = "not a request that this server understands",
              .got = from.method,
              .expected = fmt::format("one of: {}", fmt::join(known, ", ")),
              .fix = {}};
  if (to.status == 404) error.what = "there is nothing of this name";
  if (to.status == 405) error.what = "the path is right, the method is not";
  send(to, http_error(to.status, error));
}

}  // namespace

HttpReply http_error(int status, const Error& error) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::object();
  const auto add = [&parts](const char* name, const std::string& value) {
    if (!value.empty()) parts[name] = value;
  };
  add("what", error.what);
  add("where", error.where);
  add("got", error.got);
  add("expected", error.expected);
  add("fix", error.fix);
  const nlohmann::ordered_json json = {{"error", parts}};
  return {.status = status,
          .body = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpOptions& options) {
  auto server = std::make_unique<PosixHttpServer>(options);
  if (auto done = server->listen(); !done.ok()) return done.error();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace gossamer::host
