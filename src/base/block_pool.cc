// SPDX-License-Identifier: Apache-2.0
#include "base/block_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/check.h"

namespace gossamer {
namespace {

struct Block {
  explicit Block(std::size_t size) : bytes(size), memory(std::make_unique_for_overwrite<std::byte[]>(size)) {}

  const std::size_t bytes;
  const std::unique_ptr<std::byte[]> memory;
  // Set by the pool's thread; cleared when the last user lets the block go. From then on its memory may be
  // written.
  std::atomic<bool> used = true;
};

}  // namespace

class BlockPool::Blocks {
 public:
  [[nodiscard]] std::shared_ptr<Block> take(std::size_t bytes) {
    // The search begins behind the last block taken. Blocks are let go in the order they were taken, so the
    // first one looked at is mostly free.
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      next_ = next_ + 1 < blocks_.size() ? next_ + 1 : 0;
      Block& block = *blocks_[next_];
      if (block.bytes != bytes || block.used.load(std::memory_order_acquire)) continue;
      block.used.store(true, std::memory_order_relaxed);
      return blocks_[next_];
    }
    drop(bytes);
    blocks_.push_back(std::make_shared<Block>(bytes));
    return blocks_.back();
  }

  [[nodiscard]] std::size_t free_bytes() const {
    std::size_t bytes = 0;
    for (const auto& block : blocks_) bytes += is_free(*block) ? block->bytes : 0;
    return bytes;
  }

 private:
  static bool is_free(const Block& block) { return !block.used.load(std::memory_order_acquire); }

  // Frees unused blocks until `bytes` bytes are freed, or all unused ones.
  void drop(std::size_t bytes) {
    std::size_t freed = 0;
    std::erase_if(blocks_, [&](const std::shared_ptr<Block>& block) {
      if (freed >= bytes || !is_free(*block)) return false;
      freed += block->bytes;
      return true;
    });
  }

  std::vector<std::shared_ptr<Block>> blocks_;
  std::size_t next_ = 0;  // the last one that was looked at
};

BlockPool::BlockPool() : blocks_(std::make_shared<Blocks>()) {}

std::shared_ptr<std::byte[]> BlockPool::take(std::size_t bytes) const {
  CHECK(bytes > 0);
  std::shared_ptr<Block> block = blocks_->take(bytes);
  std::byte* const memory = block->memory.get();
  // The block lives as long as the pool or a user of the memory.
  return {memory,
          [block = std::move(block)](std::byte*) { block->used.store(false, std::memory_order_release); }};
}

std::size_t BlockPool::free_bytes() const { return blocks_->free_bytes(); }

}  // namespace gossamer
