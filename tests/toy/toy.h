// SPDX-License-Identifier: Apache-2.0
//
// The toy engine adds the numbers of a file. It shows that an engine needs nothing but the shared rooms.
// Number i belongs to thing i mod kThings. A step adds `batch` numbers, each to the sum of its thing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/engine/engine_entry.h"
#include "commands/engine/member_place.h"

namespace gossamer::toy {

inline constexpr std::uint64_t kThings = 8;

struct Config {
  std::string numbers = {};
  std::uint64_t batch = 4;
  std::uint64_t pause_ms = 0;
  std::uint64_t every_steps = 10;
};
[[nodiscard]] const settings::KeyTable<Config>& keys();

// The section with the sum of a thing.
[[nodiscard]] inline std::string section_of(std::uint64_t thing) { return std::to_string(thing); }

class Numbers {
 public:
  [[nodiscard]] Result<void> read(host::Disk& disk, const std::string& path);
  [[nodiscard]] std::uint64_t count() const { return all_.size(); }
  // What a thing's numbers in steps [begin, end) add up to.
  [[nodiscard]] std::uint64_t sum(std::uint64_t thing, StepNumber begin, StepNumber end,
                                  std::uint64_t batch) const;

 private:
  std::vector<std::uint64_t> all_;
};

[[nodiscard]] std::unique_ptr<cluster::Engine> make_member(const commands::MemberPlace& place,
                                                           const node::Supplied& supplied);

}  // namespace gossamer::toy
