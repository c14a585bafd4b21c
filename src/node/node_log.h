// SPDX-License-Identifier: Apache-2.0
//
// NodeLog is what a node of a run tells of itself (docs/protocols/status.md):
//
//   - events are lines of events.jsonl in its directory, and lines on the console
//   - remarks are lines on the console alone
//
// The console's lines are for people or their tools, and go through spdlog. When the console takes nothing
// (Ctrl-S, a pager), lines are lost, the console is told how many, and the loop does not wait.
//
// Thread rule: one owner, the loop thread. A thread of the log's own writes to
// the console, until the log ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/engine.h"
#include "cluster/control/leadership.h"
#include "net/link/link_events.h"
#include "node/report_options.h"
#include "run/node_host.h"
#include "run/run_log.h"

// NOLINTBEGIN(readability-identifier-naming): the library's names
namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog
// NOLINTEND(readability-identifier-naming)

namespace gossamer::node {

class NodeLog {
 public:
  static constexpr Duration kLongWait{60'000'000'000};
  static constexpr Duration kLookEvery{1'000'000'000};

  // Borrows disk, clock and console for its life. events.jsonl lies in `directory`.
  NodeLog(const run::NodeHost& host, const std::string& directory, const LogOptions& options);
  ~NodeLog();

  // Names the run and the node of all lines from now on.
  void name(std::string run, NodeId node);

  void event(const cluster::RunEvent& event);
  // Logs that a stranger was refused, at most once a second, because strangers could fill the disk. The line
  // says how many refusals there were since the one before it.
  void refusal(const std::string& from, const Error& why, Epoch epoch, Instant now);
  // A peer may have put anything into `text`, so only printable characters are shown.
  void remark(LogLevel level, Epoch epoch, std::string_view text);
  // Logs an event of a link, at level debug. A blocked lane is an event of its own.
  void link(const net::LinkEvent& event, Epoch epoch);

  // Logs, once, that the engine has lacked the same for kLongWait. Nobody else says for which member it
  // waits. To be called often. `lacks` is called once a second; nothing: it waits for nobody.
  void awaits(FunctionRef<std::optional<cluster::Awaited>()> lacks, Epoch epoch, Instant now);

  // How many events there were since the start, by kind.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }
  // The error of the first event that could not be written to events.jsonl.
  [[nodiscard]] const std::optional<Error>& first_error() const { return file_.first_error(); }

 private:
  void write(LogLevel level, const cluster::RunEvent& event);

  const LogFormat format_;
  run::RunLog file_;
  std::shared_ptr<spdlog::details::thread_pool> writer_;
  std::shared_ptr<spdlog::logger> console_;
  std::string run_;
  NodeId node_;
  std::map<std::string, std::uint64_t> counts_;
  Instant next_refusal_;
  std::uint64_t silent_refusals_ = 0;
  struct Wait {
    Epoch epoch;
    cluster::Awaited lacks;
    Instant since;
    bool told = false;
  };
  std::optional<Wait> wait_;
  Instant next_look_;
};

}  // namespace gossamer::node
