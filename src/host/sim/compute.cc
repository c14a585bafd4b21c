// SPDX-License-Identifier: Apache-2.0
#include "host/sim/compute.h"

#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/rng.h"

namespace gossamer::host {

SimCompute::SimCompute(const SimComputeOptions& options) : options_(options) {
  CHECK(options_.workers >= 1, options_.workers);
  order_.resize(static_cast<std::size_t>(options_.workers));
  std::iota(order_.begin(), order_.end(), 0);
}

void SimCompute::run(FunctionRef<void(int worker)> task) {
  CHECK(!running_);  // not from inside a task
  running_ = true;
  Rng rng(options_.seed, Purpose::kFault, runs_++);
  for (std::size_t left = order_.size(); left > 1; --left)
    std::swap(order_[left - 1], order_[rng.below(left)]);
  for (const int worker : order_) task(worker);
  running_ = false;
}

}  // namespace gossamer::host
