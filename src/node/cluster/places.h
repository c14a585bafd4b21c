// SPDX-License-Identifier: Apache-2.0
//
// Where things of a cluster lie on this machine, so that a user need not say it twice.
//
//   DIR/address.json              of a coordinator and of a node: {"version":1,"coordinator":"HOST:PORT"},
//                                 how nodes reach it; a coordinator's also has "control" and "bulk", where
//                                 it listens, "led": true once it has led, and "shared": true if it has its
//                                 store in common with others; "others", which may lead too
//   STATE/coordinators/PORT.json  {"version":1,"directory":"/PATH"}: the run that was served there last
//   STATE/nodes/NAME/             directory of a node that was not told one. NAME is the first 16 digits of
//                                 the fingerprint of the run's authority; "-2", "-3" follow where several
//                                 nodes of one machine are in the run
//
// STATE is $XDG_STATE_HOME/gossamer or ~/.local/state/gossamer. What it holds may be outdated or removed at
// any time: it is only a hint where credentials are, and those are proven to be of the run before they are
// used.
//
// Thread rule: one thread; several processes may use one STATE.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"
#include "host/api/endpoint.h"
#include "node/cluster/questions.h"
#include "node/node_host.h"

namespace gossamer::node {

// Listens on all addresses, and is none that others could come to.
[[nodiscard]] bool is_wildcard(const std::string& host);

// Where bulk listens beside control: the next port, or a free one for port 0. kUsage for the last port.
[[nodiscard]] Result<host::Endpoint> bulk_endpoint(const host::Endpoint& control);

struct RunAddress {
  host::Endpoint coordinator;  // how nodes reach it
  // Where it listens; of its own directory only.
  std::optional<host::Endpoint> control = std::nullopt;
  std::optional<host::Endpoint> bulk = std::nullopt;
  std::vector<host::Endpoint> others = {};  // that may lead too
  bool led = false;                         // the run was led from this directory
  bool shared = false;                      // its coordinators share a store
};

// Durable when it returns. `directory` exists.
[[nodiscard]] Result<void> keep_address(host::Disk& disk, const std::string& directory,
                                        const RunAddress& address);
// kBadData for a file that is none.
[[nodiscard]] Result<RunAddress> load_address(host::Disk& disk, const std::string& directory);

// Of the coordinator of the run in DIR: that directory itself, or DIR/nodes/coordinator of a run that several
// nodes train.
[[nodiscard]] std::string coordinator_directory(host::Disk& disk, const std::string& directory);

// Notes that the run in `directory`, an absolute path, is served at that port from now on.
[[nodiscard]] Result<void> note_coordinator(host::Disk& disk, const std::string& state, std::uint16_t port,
                                            const std::string& directory);

// A directory that this process holds alone.
struct OwnDirectory {
  std::string path;
  std::unique_ptr<host::DirectoryLock> lock;
};
// Makes it if it is not there. kRefused while another process holds it.
[[nodiscard]] Result<OwnDirectory> take_directory(host::Disk& disk, const std::string& path);

// The directory of a node that wants to join: of the run of the token, or without one of a run that was
// joined at `coordinator` before. kUsage if there is none, kRefused for what is no token.
struct JoinPlace {
  std::string state;
  host::Endpoint coordinator;
  std::optional<std::string> token;
};
[[nodiscard]] Result<OwnDirectory> take_node_directory(host::Disk& disk, const JoinPlace& place);

// Whom a user means by HOST:PORT or by a run directory, and with which credentials to ask there: those of
// `token` or `directory` if given, of the run directory, or of what this machine has noted for the address.
struct AskPlace {
  std::string state;
  std::string target;
  std::optional<std::string> token;
  std::string directory;
};
struct Target {
  host::Endpoint at;
  Asker asker;
};
[[nodiscard]] Result<Target> find_target(host::Disk& disk, const AskPlace& place);

}  // namespace gossamer::node
