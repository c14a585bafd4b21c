// SPDX-License-Identifier: Apache-2.0
//
// NodeLog: what a node of a run tells of itself: lines of events.jsonl in its directory, and lines for people
// or their tools on the console, through spdlog (docs/protocols/status.md). Events are both; remarks are
// lines only.
//
// A console that takes nothing (Ctrl-S, a pager) loses lines, is told how many, and holds nobody up.
//
// Thread rule: one owner, the loop thread; the console is written to by a thread of its own, until this ends.
#pragma once

#include <spdlog/logger.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "cluster/control/run_event.h"
#include "host/api/endpoint.h"
#include "net/link/links.h"
#include "node/node_host.h"
#include "node/run_log.h"

namespace spdlog::details {
class thread_pool;
}

namespace gossamer::node {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat {
  kText,    // 19:20:31 epoch 7: lost node 3: it is silent
  kLogfmt,  // time=... level=warning run=... node=1 epoch=7 event=lost peer=3 text="it is silent"
  kJson,    // the same fields, an object a line
};
struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

// What a node tells of itself, and to whom.
struct ReportOptions {
  LogOptions log;
  std::optional<host::Endpoint> metrics = std::nullopt;  // where Prometheus may ask
};

class NodeLog {
 public:
  // Borrows disk, clock and console for its life. `directory` has the events.
  NodeLog(const NodeHost& host, const std::string& directory, const LogOptions& options);
  ~NodeLog();

  // Who speaks from now on.
  void name(std::string run, NodeId node);

  void event(const cluster::RunEvent& event);
  // What a peer says of itself in `text` may be anything: only what is printable is shown.
  void remark(LogLevel level, Epoch epoch, std::string_view text);
  // At level debug.
  void link(const net::LinkEvent& event, Epoch epoch);

  // Events since the start, by kind.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }
  // The first of events.jsonl that could not be written.
  [[nodiscard]] const std::optional<Error>& first_error() const { return file_.first_error(); }

 private:
  void write(LogLevel level, const cluster::RunEvent& event);

  const LogFormat format_;
  RunLog file_;
  std::shared_ptr<spdlog::details::thread_pool> writer_;
  std::shared_ptr<spdlog::logger> console_;
  std::string run_;
  NodeId node_;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace gossamer::node
