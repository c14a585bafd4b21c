// SPDX-License-Identifier: Apache-2.0
//
// BlockPool: memory for bytes that come again and again in the same sizes, as the matrices of a step do. What
// the last owner of a block lets go is the next block of that size. From malloc large blocks are pages that
// the kernel has to find and to zero each time, and gets back soon.
//
//   const BlockPool pool;
//   auto block = pool.take(bytes);  // not zeroed
//   fill({block.get(), bytes});
//   Slice slice(std::move(block), ...);
//
// What the pool has free is no more than what was in use at once: a block of a new size replaces free ones of
// others. Blocks may outlive their pool. Owner: whoever holds it; copies share their blocks. Thread rule: one
// thread takes; blocks are let go on any.
#pragma once

#include <cstddef>
#include <memory>

namespace gossamer {

class BlockPool {
 public:
  BlockPool();

  // Requires bytes > 0. Aligned as by operator new.
  [[nodiscard]] std::shared_ptr<std::byte[]> take(std::size_t bytes) const;
  // Bytes that nobody uses.
  [[nodiscard]] std::size_t free_bytes() const;

 private:
  class Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace gossamer
