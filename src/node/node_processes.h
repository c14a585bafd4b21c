// SPDX-License-Identifier: Apache-2.0
//
// NodeProcesses are members of a run on this machine, as child processes `gossamer join`. It starts them,
// follows them to their end, and says what became of them. This process leads them.
//
//   DIR/nodes/1, DIR/nodes/2 ...  directories of the members; *.log beside them what they say
//   DIR/nodes/token               with which they join; only the user can read it
//   DIR/nodes/state               what a machine keeps of its runs
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
    std::string run;  // DIR, from the root; DIR/nodes is there
    std::size_t nodes = 1;
    std::size_t threads_each = 1;
    std::string program;  // path of the file
    host::Endpoint at;    // where they join
    std::string token;
    // A node that is killed is started again at once. Once the nodes are at work, one that fails or leaves is
    // started again, too. It is started after a second, and twice as long after each further failure, up to a
    // minute.
    bool starts_again = false;
  };

  [[nodiscard]] static Result<std::unique_ptr<NodeProcesses>> start(const run::NodeHost& host,
                                                                    Options options);

  // To be called again and again. Looks for processes that have ended. An error ends the run. `at_work`: the
  // nodes have done a step, or were all there once. A node that ends before is a failure, since the others
  // would wait for it.
  [[nodiscard]] Result<void> look(bool at_work);

  // The run is over. Processes that have not ended after so long are killed.
  void end_within(Duration time);
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
    Instant begun = {};
    Duration wait = {};                    // before it was started; nothing: at once
    std::optional<Instant> again_at = {};  // it has ended, and is started again then
  };

  NodeProcesses(const run::NodeHost& host, Options options) : host_(host), options_(std::move(options)) {}
  [[nodiscard]] std::string path(const std::string& name) const { return options_.run + "/nodes/" + name; }
  [[nodiscard]] Result<Node> begin(std::size_t number) const;
  [[nodiscard]] Result<void> look_at(Node& node, bool at_work);
  void start_again_later(Node& node, const std::string& why) const;
  void start_again(Node& node) const;
  [[nodiscard]] Error failed(const Node& node, const host::ChildProcess::End& end) const;

  const run::NodeHost& host_;
  const Options options_;
  std::vector<Node> nodes_;
  std::optional<Instant> alone_since_;  // all nodes have ended, and the run has not
  std::optional<Instant> kill_at_;
};

}  // namespace gossamer::node
