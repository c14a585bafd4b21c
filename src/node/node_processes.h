// SPDX-License-Identifier: Apache-2.0
//
// NodeProcesses are the coordinator and the members of a run on this machine, as child processes. It starts
// them, follows them to their end, and says what became of them.
//
// Thread rule: one owner. Its thread lives as long as the nodes are to live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"
#include "host/posix/child_process.h"
#include "run/node_host.h"

namespace gossamer::node {

class NodeProcesses {
 public:
  struct Options {
    // Directory of the run, from the root. It has config and data, and a start (member_job.h).
    std::string run;
    std::size_t nodes = 1;
    std::size_t threads_each = 1;
    std::string program;
    // Set where this process leads, and keeps in DIR only what nodes need. Nodes that are killed are then
    // started again. Nothing: a process of its own leads the prepared run.
    struct Lead {
      host::Endpoint at;
      std::string token;
    };
    std::optional<Lead> lead = {};
  };

  // Starts the coordinator, or the nodes of a lead. A node that ends before the first step is a failure,
  // since the others would wait for it.
  [[nodiscard]] static Result<std::unique_ptr<NodeProcesses>> start(const run::NodeHost& host,
                                                                    Options options);

  // To be called again and again. Starts members when the coordinator can be reached, and looks for processes
  // that have ended. An error ends the run. `stepping`: the nodes have done a step.
  [[nodiscard]] Result<void> look(bool stepping);

  // Asks all to leave, since the run is over. Processes that have not left after some time are killed.
  void stop();
  void kill();
  [[nodiscard]] bool all_ended();
  // A cause that members told, with what is known of their processes. "node 3 was lost" becomes "node
  // 3 was killed" or "node 3 left".
  [[nodiscard]] std::string as_seen(std::string cause);
  struct Cost {
    double cpu_seconds = 0;            // of all processes
    std::uint64_t peak_rss_bytes = 0;  // of the largest process that has ended
  };
  [[nodiscard]] Cost cost() const;

 private:
  struct Node {
    std::string name;
    std::string log;
    std::unique_ptr<host::ChildProcess> process;
    bool told = false;  // its end was told
  };

  NodeProcesses(const run::NodeHost& host, Options options) : host_(host), options_(std::move(options)) {}
  [[nodiscard]] std::string path(const std::string& name) const { return options_.run + "/nodes/" + name; }
  [[nodiscard]] Result<Node> begin(const std::string& name, std::vector<std::string> arguments) const;
  [[nodiscard]] Result<void> start_members();
  [[nodiscard]] Result<void> join(const Options::Lead& lead);
  [[nodiscard]] Result<Node> begin_member(std::size_t i) const;
  [[nodiscard]] Result<void> look_at_member(Node& member, bool stepping);
  [[nodiscard]] Error failed(const Node& node, const host::ChildProcess::End& end) const;

  const run::NodeHost& host_;
  const Options options_;
  std::optional<Node> coordinator_;  // nothing: this process leads
  std::optional<host::Endpoint> led_at_;
  std::vector<Node> members_;
  std::optional<Instant> alone_since_;  // all members have ended, the coordinator has not
  std::optional<Instant> kill_at_;
};

}  // namespace gossamer::node
