// SPDX-License-Identifier: Apache-2.0
//
// SimCompute: workers that run one after another on the caller's thread. Each run has another order, which
// the seed decides. Tasks that wrongly use each other's data then give results that change with the seed.
// Thread rule: as for Compute.
#pragma once

#include <cstdint>
#include <vector>

#include "host/api/compute.h"

namespace gossamer::host {

struct SimComputeOptions {
  int workers = 1;  // >= 1
  std::uint64_t seed = 1;
  std::uint64_t memory_limit_bytes = std::uint64_t{16} << 30;
  std::uint64_t peak_rss_bytes = std::uint64_t{1} << 30;
};

class SimCompute final : public Compute {
 public:
  explicit SimCompute(const SimComputeOptions& options);

  [[nodiscard]] int workers() const override { return options_.workers; }
  void run(FunctionRef<void(int worker)> task) override;
  [[nodiscard]] Duration cpu() const override { return {}; }
  [[nodiscard]] std::uint64_t memory_limit_bytes() const override { return options_.memory_limit_bytes; }
  [[nodiscard]] std::uint64_t peak_rss_bytes() const override { return options_.peak_rss_bytes; }

 private:
  SimComputeOptions options_;
  std::vector<int> order_;
  std::uint64_t runs_ = 0;
  bool running_ = false;
};

}  // namespace gossamer::host
