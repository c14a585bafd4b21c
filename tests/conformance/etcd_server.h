// SPDX-License-Identifier: Apache-2.0
//
// A real etcd of one member for a test, on two free ports of the loopback, with its data in a temporary
// directory. The object kills it and removes its data when it goes. The server never outlives the test's
// process. Owner and thread rule: the test's thread.
#pragma once

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace gossamer::host {

class EtcdServer {
 public:
  // The program's path; empty if it is not installed (Debian: etcd-server).
  [[nodiscard]] static std::string program();
  // Starts the server and waits until it answers. Requires program(). The error is kFailed, with the server's
  // last words, if it ends first.
  [[nodiscard]] static Result<std::unique_ptr<EtcdServer>> start();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;
  ~EtcdServer();

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(client_port_); }
  // Stops it (SIGSTOP) and lets it go on (SIGCONT).
  void freeze();
  void thaw();
  // Returns after `patience`, or at once when the server has ended. An ended server is a failure of the test.
  void watch(Duration patience) const;

  // Posts a request as an operator would, or fails the test.
  [[nodiscard]] nlohmann::json ask(const std::string& path, const nlohmann::json& request) const;
  // Ends the lease of the run's leader behind its back.
  void depose(const std::string& run) const;
  // All keys below gossamer/RUN/, without that.
  [[nodiscard]] std::vector<std::string> keys(const std::string& run) const;

 private:
  EtcdServer() = default;
  [[nodiscard]] Result<void> run(const std::string& program);
  [[nodiscard]] bool answers() const;

  std::string directory_;
  int client_port_ = 0;
  pid_t process_ = -1;
  int process_fd_ = -1;  // readable once it has ended
};

}  // namespace gossamer::host
