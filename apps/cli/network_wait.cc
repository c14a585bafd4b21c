// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/network_wait.h"

#include <poll.h>

namespace gossamer::cli {
namespace {

constexpr int kPatienceSeconds = 600;  // the patience of members
constexpr int kLookEveryMs = 1000;

}  // namespace

Result<void> wait_for_network(Context& context, const std::function<Result<void>()>& attempt,
                              const std::function<bool()>& stop) {
  Result<void> last = attempt();
  for (int second = 0; !last.ok() && second < kPatienceSeconds && !(stop && stop()); ++second) {
    if (second == 0)
      context.console.write(
          "waits for this machine's network, ten minutes at most: " + last.error().message() + "\n");
    ::poll(nullptr, 0, kLookEveryMs);  // or until a signal comes
    last = attempt();
  }
  return last;
}

}  // namespace gossamer::cli
