// SPDX-License-Identifier: Apache-2.0
//
// BlockPool: memory for bytes that come again and again in the same sizes, as the matrices of a step do. A
// block that its last owner lets go is handed out again for the next request of that size. malloc would
// return a large block to the kernel, which then has to find and zero its pages each time.
//
//   const BlockPool pool;
//   auto block = pool.take(bytes);  // not zeroed
//   fill({block.get(), bytes});
//   Slice slice(std::move(block), ...);
//
// The pool keeps no more bytes free than were in use at once: a block of a new size replaces free ones of
// other sizes. Blocks may outlive their pool. Owner: one; copies of a pool share their blocks. Thread rule:
// one thread takes; any thread lets blocks go.
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
