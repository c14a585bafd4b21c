// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: another program that ends with this one. It has a process group of its own, so that Ctrl-C at
// the terminal reaches this process alone. It is killed when the object is destroyed. If this process ends
// first, however that comes, the system kills it. Its standard input is empty.
//
// Thread rule: one owner. The thread that starts the child must live as long as the child is to: the system
// kills the child when that thread ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gossamer::host {

// The path of the program that runs here.
[[nodiscard]] std::string own_program();

class ChildProcess {
 public:
  struct Options {
    std::string program;                 // path of the file
    std::vector<std::string> arguments;  // after the program's name
    std::string output;                  // file for its standard output and error, nobody else's to read
    std::vector<std::pair<std::string, std::string>> environment = {};  // set beside this process's
  };
  struct End {
    int status = 0;  // exit status, or 128 plus the signal that ended it
    bool by_signal = false;
    double cpu_seconds = 0;  // user and system
    std::uint64_t peak_rss_bytes = 0;
  };

  [[nodiscard]] static Result<std::unique_ptr<ChildProcess>> start(const Options& options);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  [[nodiscard]] pid_t id() const { return id_; }
  // The child's end, once it has ended; does not wait.
  [[nodiscard]] const std::optional<End>& end();
  void kill();
  // User and system time of the child alone: so far, or at its end.
  [[nodiscard]] double cpu_seconds();

 private:
  explicit ChildProcess(pid_t id) : id_(id) {}
  void collect(int options);

  const pid_t id_;
  std::optional<End> end_;
};

}  // namespace gossamer::host
