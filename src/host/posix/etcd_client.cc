// SPDX-License-Identifier: Apache-2.0
#include "host/posix/etcd_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

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

Reply post_to(httplib::Client& client, const std::string& path, const std::string& text) {
  Reply reply;
  std::string body;
  httplib::Request request;
  request.method = "POST";
  request.path = path;
  request.set_header("Content-Type", "application/json");
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
    reply.was_sent =
        result.error() != httplib::Error::Connection && result.error() != httplib::Error::ConnectionTimeout;
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
                                                       Duration connect_timeout, Duration reply_timeout) {
  std::unique_ptr<EtcdClient> made(new EtcdClient());
  for (const std::string& url : urls) {
    constexpr std::string_view kScheme = "http://";
    const bool plausible = url.starts_with(kScheme) && url.size() > kScheme.size() &&
                           url.find_first_of("/?# ", kScheme.size()) == std::string::npos;
    auto client = plausible ? std::make_unique<httplib::Client>(url) : nullptr;
    if (!client || !client->is_valid()) {
      return Error{.kind = ErrorKind::kUsage,
                   .where = "address of etcd",
                   .what = "cannot use this address",
                   .got = fmt::format("'{}'", url),
                   .expected = "http://HOST:PORT",
                   .fix = "give the client addresses of etcd's members"};
    }
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
                 .expected = "http://HOST:PORT, once or more",
                 .fix = "give the client addresses of etcd's members"};
  }
  return made;
}

EtcdAnswer EtcdClient::post(const std::string& path, const json& request) {
  const std::string text = request.dump();
  EtcdAnswer answer;
  std::string reasons;
  for (std::size_t tried = 0; tried < clients_.size(); ++tried) {
    Reply reply = post_to(*clients_[current_], path, text);
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
