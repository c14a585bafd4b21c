// SPDX-License-Identifier: Apache-2.0
//
// RecentMean: the mean of the losses of the last kLossWindow steps. Step s has its fixed place, so that the
// sum of a resumed run is in the order of one that never stopped. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gossamer::engine {

class RecentMean {
 public:
  static constexpr std::size_t kLossWindow = 100;

  RecentMean() = default;
  // `losses` are those of the last of `steps` steps, the oldest first.
  RecentMean(std::span<const double> losses, std::uint64_t steps) : count_(steps) {
    const std::size_t n = std::min({losses.size(), kLossWindow, static_cast<std::size_t>(steps)});
    const auto last = losses.last(n);
    first_ = steps - n;
    for (std::size_t i = 0; i < n; ++i) values_[(first_ + i) % kLossWindow] = last[i];
  }
  void add(double value) { values_[count_++ % kLossWindow] = value; }
  // The oldest first.
  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> out;
    for (std::uint64_t s = oldest(); s < count_; ++s) out.push_back(values_[s % kLossWindow]);
    return out;
  }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double value : values_) sum += value;
    const std::uint64_t n = count_ - oldest();
    return n == 0 ? 0 : sum / static_cast<double>(n);
  }

 private:
  [[nodiscard]] std::uint64_t oldest() const {
    return std::max(first_, count_ > kLossWindow ? count_ - kLossWindow : 0);
  }

  std::array<double, kLossWindow> values_{};
  std::uint64_t first_ = 0;  // the first step whose loss is known
  std::uint64_t count_ = 0;  // steps
};

}  // namespace gossamer::engine
