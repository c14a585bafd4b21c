// SPDX-License-Identifier: Apache-2.0
//
// The places where files of a cluster lie on this machine, so that a user need not say them twice.
//
//   DIR/address.json              of a coordinator and of a node: {"version":1,"coordinator":"HOST:PORT"},
//                                 how nodes reach the coordinator; "others" are coordinators that may lead.
//                                 A coordinator's file also has "control" and "bulk", where it listens,
//                                 "led": true once it has led, and "shared": true if it shares its store
//   STATE/coordinators/PORT.json  {"version":1,"directory":"/PATH"}: the run that was served there last
//   STATE/nodes/NAME/             directory of a node that was not told one. NAME is the first 16 digits of
//                                 the fingerprint of the run's authority; "-2", "-3" follow where several
//                                 nodes of one machine are in the run
//
// STATE is $XDG_STATE_HOME/gossamer or ~/.local/state/gossamer. Its files may be outdated, or
// removed at any time. They are only a hint where credentials are. Credentials are proven to be
// of the run before they are used.
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
#include "node/questions.h"
#include "run/node_host.h"

namespace gossamer::node {

// Whether `host` listens on all addresses. Others cannot reach a machine by such a name.
[[nodiscard]] bool is_wildcard(const std::string& host);

// The endpoint where bulk listens beside control: the next port, or a free one for
// port 0. kUsage for the last port.
[[nodiscard]] Result<host::Endpoint> bulk_endpoint(const host::Endpoint& control);

struct RunAddress {
  host::Endpoint coordinator;  // how nodes reach it
  // Where the coordinator listens. Only the coordinator's own directory has it.
  std::optional<host::Endpoint> control = std::nullopt;
  std::optional<host::Endpoint> bulk = std::nullopt;
  std::vector<host::Endpoint> others = {};  // coordinators that may lead too
  bool led = false;                         // the run was led from this directory
  bool shared = false;                      // its coordinators share a store
};

// Writes DIR/address.json, durable when it returns. `directory` exists.
[[nodiscard]] Result<void> keep_address(host::Disk& disk, const std::string& directory,
                                        const RunAddress& address);
// Reads DIR/address.json. kBadData for a file that is none.
[[nodiscard]] Result<RunAddress> load_address(host::Disk& disk, const std::string& directory);

// The directory of the coordinator of the run in DIR: DIR itself, or DIR/nodes/coordinator of
// a run that several nodes train.
[[nodiscard]] std::string coordinator_directory(host::Disk& disk, const std::string& directory);

// The coordinator's own directory in DIR, the directory of a run that this process leads and trains.
[[nodiscard]] std::string lead_directory(const std::string& run);

// Notes that the run in `directory`, an absolute path, is served at that port from now on.
[[nodiscard]] Result<void> note_coordinator(host::Disk& disk, const std::string& state, std::uint16_t port,
                                            const std::string& directory);

// A directory that this process holds alone, as long as one of the copies is there.
struct OwnDirectory {
  std::string path;
  std::shared_ptr<host::DirectoryLock> lock;
};
// Makes the directory if it is not there, and takes its lock. kRefused while another process holds it.
[[nodiscard]] Result<OwnDirectory> take_directory(host::Disk& disk, const std::string& path);

// JoinPlace is a node that wants to join. take_node_directory() takes a directory for it: one of the token's
// run, or without a token the directory of an earlier life that joined at `coordinator`. kUsage if there is
// none. kRefused for a text that is no token.
struct JoinPlace {
  std::string state;
  host::Endpoint coordinator;
  std::optional<std::string> token;
};
[[nodiscard]] Result<OwnDirectory> take_node_directory(host::Disk& disk, const JoinPlace& place);

// AskPlace is what a user says: `target` is HOST:PORT or a run directory. find_target() finds the coordinator
// and the credentials to ask with. They are `token` or `directory` if given, else those of the run directory,
// else those that this machine has noted for the address.
struct AskPlace {
  std::string state;
  std::string target;
  std::optional<std::string> token;
  std::string directory;
};
struct Target {
  host::Endpoint at;
  Asker asker;
  // Where the coordinator of that run directory listens; nothing unless `target` is one.
  std::optional<host::Endpoint> listens = std::nullopt;
};
[[nodiscard]] Result<Target> find_target(host::Disk& disk, const AskPlace& place);

}  // namespace gossamer::node
