// SPDX-License-Identifier: Apache-2.0
//
// EtcdClient posts JSON to etcd's gateway, at the first of several addresses that answers. The one that did
// is asked first the next time. An address is passed over for the next if it gives no answer, or one that
// says nothing about the request ("no leader", status 5xx). Each address is asked once a call. Internal to
// host/posix.
//
// Other machines are reached over TLS, with a name and a password. The first request asks for a token, and so
// does one that is refused because the token is too old. This machine may be reached without.
//
// Every connection and every single read and write has a timeout. A program that uses this ignores SIGPIPE:
// the library writes to connections that may be gone. Thread rule: one thread.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "host/posix/etcd_access.h"

namespace httplib {
class Client;
}

namespace gossamer::host {

struct EtcdAnswer {
  std::optional<nlohmann::json> body = {};  // the answer to a request that was carried out
  Error error = {};                         // why there is no body
  // At least one attempt went unanswered: whatever the rest says, the request may have been carried out, or
  // may still be, much later.
  bool in_doubt = false;
};

class EtcdClient {
 public:
  // Each address is "https://HOST:PORT", or "http://HOST:PORT" of a loopback. kUsage for anything else, and
  // for https without a password.
  [[nodiscard]] static Result<std::unique_ptr<EtcdClient>> create(const std::vector<std::string>& urls,
                                                                  const EtcdAccess& access,
                                                                  Duration connect_timeout,
                                                                  Duration reply_timeout);
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;
  ~EtcdClient();

  [[nodiscard]] EtcdAnswer post(const std::string& path, const nlohmann::json& request);
  // All addresses, for messages.
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  enum class Login { kDone, kRefused, kNoAnswer };

  EtcdClient();
  // Asks the current address for a token. `error`: why there is none.
  [[nodiscard]] Login log_in(Error& error);

  EtcdAccess access_;
  std::string token_;  // empty: none yet
  std::vector<std::unique_ptr<httplib::Client>> clients_;
  std::vector<std::string> urls_;
  std::string where_;
  std::size_t current_ = 0;
};

}  // namespace gossamer::host
