// SPDX-License-Identifier: Apache-2.0
#include "cluster/chunks/chunk_messages.h"

#include <fmt/format.h>

namespace gossamer::cluster {

Error chunks_fault(net::PeerId peer, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("node-{}", peer.node.value),
          .what = "the peer broke the rules of chunk transfer",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look at that node's disk and version; chunks are fetched from others"};
}

}  // namespace gossamer::cluster
