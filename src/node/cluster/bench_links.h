// SPDX-License-Identifier: Apache-2.0
//
// bench links: what the links of this system reach between these machines, over the real network: round trip,
// throughput of one large and of many small messages, an exchange among all, control beside bulk
// (link_trials.h says how each is measured). One process is one node; without `peers` a whole mesh runs in
// this one, over loopback.
//
// Thread rule: the calling thread is the loop thread; gRPC's threads post to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/endpoint.h"
#include "node/cluster/link_figures.h"
#include "node/cluster/link_trials.h"
#include "node/node_host.h"

namespace gossamer::node {

struct BenchLinks {
  std::uint64_t node = 1;             // which of the peers this process is: 1 is the first
  std::vector<host::Endpoint> peers;  // where each listens for control; for bulk one port higher
  std::string listen;                 // host to listen at; empty: as in `peers`
  std::uint64_t nodes = 3;            // of the mesh in this process, where there are no peers
  std::string authority;              // directory of the certificate authority; empty: no TLS
  LinkTrialPlan plan{.trials = {LinkTrial::kRoundTrip, LinkTrial::kMessage, LinkTrial::kMessages,
                                LinkTrial::kExchange, LinkTrial::kControlBesideBulk}};
  double rate_mbps = 0;  // of the line, 10^6 bits a second; 0: not known
  double patience = 30;  // seconds in which nothing moves
};

// Sets one option from "bytes=1000000". kUsage names the nearest option or what it may be.
[[nodiscard]] Result<void> set_bench_option(BenchLinks& options, std::string_view text);
// A line for each option with its value and range.
[[nodiscard]] std::string bench_options_help(BenchLinks options);

struct BenchLinksNode {
  std::uint64_t node = 0;
  std::vector<LinkFigures> figures;
};
struct BenchLinksResult {
  std::vector<BenchLinksNode> nodes;  // one, or all of the mesh in this process
};

// kUsage: the keys do not fit together. Otherwise an error names the node that did not come or does not
// answer.
[[nodiscard]] Result<BenchLinksResult> bench_links(const NodeHost& host, const BenchLinks& options);

[[nodiscard]] std::string to_json(const BenchLinksResult& result, const BenchLinks& options);
[[nodiscard]] std::string to_text(const BenchLinksResult& result);

}  // namespace gossamer::node
