// SPDX-License-Identifier: Apache-2.0
//
// bench links measures what the links of this system reach between these machines, over the real network:
//
//   - round trip
//   - throughput of one large message and of many small ones
//   - an exchange among all nodes
//   - control beside bulk
//
// link_trials.h says how each is measured. One process is one node. Without `peers` a whole mesh runs
// in this process, over loopback.
//
// Thread rule: the calling thread is the loop thread; gRPC's threads post to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/bench/link_figures.h"
#include "commands/bench/link_trials.h"
#include "host/api/endpoint.h"
#include "run/node_host.h"
#include "settings/key_table.h"

namespace gossamer::commands {

struct BenchLinks {
  std::uint64_t node = 1;             // number of this process among the peers; 1 is the first
  std::vector<host::Endpoint> peers;  // where each listens for control; for bulk one port higher
  std::string listen;                 // host to listen at; empty: as in `peers`
  std::uint64_t nodes = 3;            // size of the mesh in this process, where there are no peers
  std::string authority;              // directory of the certificate authority; empty: no TLS
  LinkTrialPlan plan{.trials = {LinkTrial::kRoundTrip, LinkTrial::kMessage, LinkTrial::kMessages,
                                LinkTrial::kExchange, LinkTrial::kControlBesideBulk}};
  double rate_mbps = 0;  // rate of the line, 10^6 bits a second; 0: not known
  double patience = 30;  // most seconds in which nothing moves
};

[[nodiscard]] const settings::KeyTable<BenchLinks>& bench_links_keys();

struct BenchLinksNode {
  std::uint64_t node = 0;
  std::vector<LinkFigures> figures;
};
struct BenchLinksResult {
  std::vector<BenchLinksNode> nodes;  // one, or all of the mesh in this process
};

// kUsage when the keys do not fit together. Any other error names the node that
// did not come or does not answer.
[[nodiscard]] Result<BenchLinksResult> bench_links(const run::NodeHost& host, const BenchLinks& options);

[[nodiscard]] std::string to_json(const BenchLinksResult& result, const BenchLinks& options);
[[nodiscard]] std::string to_text(const BenchLinksResult& result);

}  // namespace gossamer::commands
