// SPDX-License-Identifier: Apache-2.0
//
// Digest: an XXH3 hash of bytes that come piece by piece. The cuts between pieces do not change it.
//
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct XXH3_state_s;

namespace gossamer {

class Digest {
 public:
  Digest();

  void add(std::span<const std::byte> bytes);
  // The hash of all bytes so far. More may follow.
  [[nodiscard]] std::uint64_t value() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace gossamer
