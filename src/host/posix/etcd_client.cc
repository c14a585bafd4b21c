// SPDX-License-Identifier: Apache-2.0
#include "host/posix/etcd_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "host/api/endpoint.h"
#include "json/read_json.h"

namespace gossamer::host {
namespace {

using nlohmann::json;

// What etcd says about a request that it refused; empty for other answers.
std::string message_of(const json& body) {
  const auto found = body.is_object() ? body.find("message") : body.end();
  return found != body.end() && found->is_string() ? found->get<std::string>() : std::string();
}

struct Reply {
  int status = 0;        // 0: none
  json body = {};        // null for what is no JSON
  bool was_sent = true;  // false: there was no connection, so nobody has seen the request
  std::string reason = {};
};

bool is_without_connection(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
    case httplib::Error::SSLConnection:
    case httplib::Error::SSLLoadingCerts:
    case httplib::Error::SSLServerVerification: return true;
    default: return false;
  }
}

Reply post_to(httplib::Client& client, const std::string& path, const std::string& token,
              const std::string& text) {
  Reply reply;
  std::string body;
  httplib::Request request;
  request.method = "POST";
  request.path = path;
  request.set_header("Content-Type", "application/json");
  if (!token.empty()) request.set_header("Authorization", token);
  request.body = text;
  // Taken as they come: etcd ends refusals with trailing headers, at which the library, having read all that
  // matters, reports a failure. A body that is one whole JSON object lacks nothing.
  request.response_handler = [&reply](const httplib::Response& response) {
    reply.status = response.status;
    return true;
  };
  request.content_receiver = [&body](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    body.append(data, size);
    return true;
  };
  const auto result = client.send(request);
  reply.body = read_json<json>(body);
  if (!result && !reply.body.is_object()) {
    reply.status = 0;
    reply.was_sent = !is_without_connection(result.error());
    reply.reason = httplib::to_string(result.error());
  } else {
    reply.reason = fmt::format("status {} {}", reply.status, message_of(reply.body));
  }
  return reply;
}

Error refused_by_etcd(const std::string& url, int status, const std::string& message) {
  Error error{.where = url,
              .what = "etcd refuses the request",
              .got = fmt::format("status {}: {}", status, message.empty() ? "no reason" : message),
              .expected = "status 200",
              .fix = "see that this is the address of an etcd 3.4 or newer"};
  if (message.find("space exceeded") != std::string::npos) {
    error.expected = "room in etcd's database";
    error.fix = "compact and defragment etcd and clear its alarm; run it with --auto-compaction-retention";
  }
  return error;
}

// Whether the request was refused for its token alone. Another one may do.
bool is_token_old(const Reply& reply) {
  const std::string message = message_of(reply.body);
  return message.find("invalid auth token") != std::string::npos ||
         message.find("revision of auth store is old") != std::string::npos;
}

Error unusable(const std::string& url, std::string what, std::string expected, std::string fix) {
  return {.kind = ErrorKind::kUsage,
          .where = "address of etcd",
          .what = std::move(what),
          .got = fmt::format("'{}'", url),
          .expected = std::move(expected),
          .fix = std::move(fix)};
}

// etcd keeps the name of the leader, and what proves tokens. So no network sees what it is asked.
Result<void> check_address(const std::string& url, const EtcdAccess& access) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kSecure = "https://";
  const bool secure = url.starts_with(kSecure);
  const std::size_t scheme = secure ? kSecure.size() : kPlain.size();
  const bool plausible =
      (secure || url.starts_with(kPlain)) && url.find_first_of("/?# @", scheme) == std::string::npos;
  const auto at =
      plausible ? parse_endpoint(std::string_view(url).substr(scheme)) : Result<Endpoint>(Error{});
  if (!at.ok()) {
    return unusable(url, "cannot use this address", "https://HOST:PORT, or http://127.0.0.1:PORT",
                    "give the client addresses of etcd's members");
  }
  if (!secure && !is_loopback(at->host)) {
    return unusable(url, "etcd on another machine is reached over TLS alone",
                    "https://HOST:PORT, or http:// with an address of this machine",
                    "run etcd with --cert-file and --key-file, and say https://");
  }
  if (secure && access.name.empty()) {
    return unusable(url, "etcd over TLS takes a password too", "a name and a password",
                    "make a user of etcd, and add ',login=FILE' with NAME:PASSWORD in the file");
  }
  return {};
}

Error nobody_answers(const std::string& where, std::string got) {
  return Error{.where = where,
               .what = "etcd does not answer",
               .got = std::move(got),
               .expected = "an answer from one of the addresses",
               .fix = "see that etcd runs there, that most of its members do, and that it can be reached"};
}

}  // namespace

EtcdClient::EtcdClient() = default;
EtcdClient::~EtcdClient() = default;

Result<std::unique_ptr<EtcdClient>> EtcdClient::create(const std::vector<std::string>& urls,
                                                       const EtcdAccess& access, Duration connect_timeout,
                                                       Duration reply_timeout) {
  std::unique_ptr<EtcdClient> made(new EtcdClient());
  made->access_ = access;
  for (const std::string& url : urls) {
    if (auto done = check_address(url, access); !done.ok()) return done.error();
    auto client = std::make_unique<httplib::Client>(url);
    if (!client->is_valid()) {
      return unusable(url, "cannot use this address", "https://HOST:PORT",
                      "give the client addresses of etcd's members");
    }
    if (!access.ca_file.empty()) client->set_ca_cert_path(access.ca_file);
    client->enable_server_certificate_verification(true);
    client->set_connection_timeout(std::chrono::nanoseconds(connect_timeout.ns));
    client->set_read_timeout(std::chrono::nanoseconds(reply_timeout.ns));
    client->set_write_timeout(std::chrono::nanoseconds(reply_timeout.ns));
    client->set_keep_alive(true);
    // A request leaves in two pieces; waiting for the first one's acknowledgement costs 40 ms.
    client->set_tcp_nodelay(true);
    made->clients_.push_back(std::move(client));
    made->urls_.push_back(url);
    made->where_ += (made->where_.empty() ? "" : ", ") + url;
  }
  if (made->clients_.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "address of etcd",
                 .what = "there is none",
                 .expected = "https://HOST:PORT, once or more",
                 .fix = "give the client addresses of etcd's members"};
  }
  return made;
}

EtcdClient::Login EtcdClient::log_in(Error& error) {
  token_.clear();
  const json request = {{"name", access_.name}, {"password", access_.password}};
  const Reply reply = post_to(*clients_[current_], "/v3/auth/authenticate", "",
                              request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  const auto found = reply.body.is_object() ? reply.body.find("token") : reply.body.end();
  if (reply.status == 200 && found != reply.body.end() && found->is_string()) {
    token_ = found->get<std::string>();
    return Login::kDone;
  }
  if (reply.status >= 400 && reply.status < 500) {
    error = refused_by_etcd(urls_[current_], reply.status, message_of(reply.body));
    error.what = "etcd refuses the name or the password";
    error.expected = "a user of etcd";
    error.fix = "see that the user is there, has a role, and that etcd's authentication is on";
    return Login::kRefused;
  }
  error.got = reply.reason;
  return Login::kNoAnswer;
}

EtcdAnswer EtcdClient::post(const std::string& path, const json& request) {
  const std::string text = request.dump();
  EtcdAnswer answer;
  std::string reasons;
  for (std::size_t tried = 0; tried < clients_.size(); ++tried) {
    Login login = Login::kDone;
    if (!access_.name.empty() && token_.empty()) login = log_in(answer.error);
    Reply reply;
    if (login == Login::kDone) reply = post_to(*clients_[current_], path, token_, text);
    if (login == Login::kDone && !access_.name.empty() && is_token_old(reply)) {
      login = log_in(answer.error);
      if (login == Login::kDone) reply = post_to(*clients_[current_], path, token_, text);
    }
    if (login == Login::kRefused) return answer;
    if (login == Login::kNoAnswer) reply = {.was_sent = false, .reason = answer.error.got};
    if (reply.status == 200 && reply.body.is_object()) {
      answer.body = std::move(reply.body);
      return answer;
    }
    if (reply.status >= 400 && reply.status < 500) {
      answer.error = refused_by_etcd(urls_[current_], reply.status, message_of(reply.body));
      return answer;
    }
    answer.in_doubt = answer.in_doubt || reply.was_sent;
    reasons += (reasons.empty() ? "" : ", ") + reply.reason;
    current_ = (current_ + 1) % clients_.size();
  }
  answer.error = nobody_answers(where_, reasons);
  return answer;
}

}  // namespace gossamer::host
