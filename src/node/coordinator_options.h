// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator is to be like (coordinator_node.h). Apart from it, because commands that fill in options
// need no coordinator.
//
// Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "cluster/control/view.h"
#include "cluster/membership/track.h"
#include "host/api/endpoint.h"
#include "node/admission/credentials.h"
#include "node/companion.h"
#include "node/report_options.h"
#include "run/lead_file.h"

namespace gossamer::node {

struct CoordinatorOptions {
  std::string directory;  // absolute path
  std::string state;      // STATE of this machine (places.h)
  bool resume = false;
  // The directory's run begins anew: all steps before this one are done, and no member has anything of the
  // run. Credentials, tokens and numbers stay (anew_store.h). Needs `resume`.
  std::optional<StepNumber> anew = {};
  // Where it listens for control. Bulk listens at the next port, or at a free one for port 0.
  // Nothing: where it listened before.
  std::optional<host::Endpoint> listen;
  std::string advertise = {};  // name by which nodes reach this machine; empty: listen.host
  std::string store = {};      // sqlite:FILE or etcd:URL,...[,ca=FILE][,login=FILE]; empty: a file here
  std::vector<host::Endpoint> standbys = {};  // other coordinators of the run
  std::size_t first_members = 1;
  std::function<std::string(const cluster::View&)> waits_for = {};  // as in cluster::CoordinatorOptions
  std::string configuration;                                        // for the members' engines
  run::LeadFile file = {};                                          // kept in the directory
  std::vector<cluster::TrackId> tracks = {};
  std::optional<StepNumber> steps = {};  // of the run, where it has an end
  std::string program;
  std::int64_t certificate_seconds = kCertificateSeconds;  // how long nodes' certificates hold
  ReportOptions report;
  MakeCompanion make_companion = {};  // may be empty
};

}  // namespace gossamer::node
