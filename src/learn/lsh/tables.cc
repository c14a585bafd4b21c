// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace gossamer::lsh {
namespace {

using kernels::kCodeRows;

// An overlay of more than this share of its block is merged into the base.
constexpr std::size_t kOverlayShare = 16;

double length_of(const float* row, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  return std::sqrt(sum);
}

}  // namespace

std::uint64_t most_table_bytes(const TablesShape& shape) {
  const auto block = [&](std::size_t rows) {
    const std::size_t moved = rows / kOverlayShare;
    return BucketBlock::bytes_of({.tables = shape.tables, .entries = rows, .key_bits = shape.key_bits}) +
           BucketBlock::bytes_of({.tables = shape.tables, .entries = moved, .key_bits = shape.key_bits}) +
           moved * sizeof(std::uint16_t) + (rows + 63) / 64 * sizeof(std::uint64_t);
  };
  const std::size_t last = shape.rows % kBlockRows;
  return shape.rows / kBlockRows * block(kBlockRows) + (last > 0 ? block(last) : 0) +
         shape.rows * sizeof(float) + std::min(shape.rows, kBlockRows) * sizeof(std::uint16_t);
}

Tables::Tables(const HashFamily& family, std::size_t rows, const TablesOptions& options)
    : family_(family),
      rows_(rows),
      key_bits_(std::min(options.key_bits, family.code_bits())),
      folded_(family.code_bits() > options.key_bits),
      tolerance_(options.tolerance),
      drift_(rows),
      all_locals_(std::min(rows, kBlockRows)),
      blocks_((rows + kBlockRows - 1) / kBlockRows) {
  CHECK(rows >= 1 && rows <= UINT32_MAX, rows);
  CHECK(options.key_bits >= 1 && options.key_bits <= 20, options.key_bits);
  CHECK(options.tolerance >= 0, options.tolerance);
  std::iota(all_locals_.begin(), all_locals_.end(), std::uint16_t{0});
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    blocks_[b].base.reshape({.tables = tables(), .entries = block_rows(b), .key_bits = key_bits_});
    blocks_[b].masked.resize((block_rows(b) + 63) / 64);
  }
}

Tables::Work::Work(const Tables& tables, int workers) : keys(tables.tables() * kBlockRows) {
  for (int w = 0; w < workers; ++w) {
    hashing.emplace_back(tables.family_.shape());
    codes.emplace_back(tables.tables() * kCodeRows);
    before.emplace_back(kBlockRows);
  }
}

std::size_t Tables::block_rows(std::size_t block) const {
  return std::min(kBlockRows, rows_ - block * kBlockRows);
}

void Tables::hash_some(const RowsView& view, std::size_t first, std::span<const std::uint16_t> locals,
                       int worker, Work& work) {
  const auto w = static_cast<std::size_t>(worker);
  AlignedArray<std::uint32_t>& codes = work.codes[w];
  std::array<const float*, kCodeRows> rows;
  std::array<float, kCodeRows> slack;
  for (std::size_t i = 0; i < locals.size(); ++i) rows[i] = view.row(first + locals[i]);
  family_.hash_block(std::span(rows).first(locals.size()), work.hashing[w],
                     {.codes = codes.data(), .slack = slack.data()});
  for (std::size_t t = 0; t < tables(); ++t) {
    std::uint32_t* keys = work.keys.data() + t * kBlockRows;
    for (std::size_t i = 0; i < locals.size(); ++i) keys[locals[i]] = key_of(codes[t * kCodeRows + i]);
  }
  for (std::size_t i = 0; i < locals.size(); ++i) {
    double allowance = static_cast<double>(slack[i]);
    if (tolerance_ > 0) {
      // A little is taken off for the rounding to float.
      const double length = length_of(rows[i], family_.shape().dimension);
      allowance = std::max(allowance, tolerance_ * length * (1 - 0x1p-20));
    }
    drift_.reset(first + locals[i], static_cast<float>(allowance));
  }
}

// Puts the new keys of work.locals into work.keys.
void Tables::hash_locals(const RowsView& view, std::size_t block, Work& work, host::Compute& compute) {
  const std::span<const std::uint16_t> locals = work.locals;
  const std::size_t groups = (locals.size() + kCodeRows - 1) / kCodeRows;
  compute.run([&](int worker) {
    const host::Range range = host::worker_range(groups, worker, compute.workers());
    for (std::size_t g = range.begin; g < range.end; ++g) {
      const std::size_t from = g * kCodeRows;
      const auto group = locals.subspan(from, std::min(kCodeRows, locals.size() - from));
      hash_some(view, block * kBlockRows, group, worker, work);
    }
  });
}

void Tables::mask(Block& block, std::vector<std::uint16_t>& moved, std::size_t rows) {
  block.moved.swap(moved);
  std::ranges::fill(block.masked, 0U);
  for (const std::size_t local : block.moved) {
    CHECK(local < rows, local, rows);
    block.masked[local / 64] |= std::uint64_t{1} << (local % 64);
  }
}

bool Tables::place_locals(std::size_t block, Work& work, host::Compute& compute) {
  Block& b = blocks_[block];
  const std::size_t rows = block_rows(block);
  work.moved.clear();
  std::ranges::set_union(b.moved, work.locals, std::back_inserter(work.moved));
  const bool sort_all = work.moved.size() > rows / kOverlayShare;
  if (!sort_all) {
    work.overlay.reshape({.tables = tables(), .entries = work.moved.size(), .key_bits = key_bits_});
  }
  compute.run([&](int worker) {
    const host::Range range = host::worker_range(tables(), worker, compute.workers());
    const auto before = work.before[static_cast<std::size_t>(worker)].span();
    for (std::size_t t = range.begin; t < range.end; ++t) {
      const std::uint32_t* keys = work.keys.data() + t * kBlockRows;
      if (sort_all && work.locals.size() < rows) b.base.decode(t, before);
      if (b.overlay.entries() > 0) b.overlay.decode(t, before);
      for (const std::uint16_t local : work.locals) before[local] = keys[local];
      if (sort_all) {
        b.base.fill(t, std::span(all_locals_).first(rows), before);
      } else {
        work.overlay.fill(t, work.moved, before);
      }
    }
  });
  if (sort_all) {
    work.moved.clear();
    work.overlay = BucketBlock();
  }
  std::swap(b.overlay, work.overlay);
  mask(b, work.moved, rows);
  return sort_all;
}

void Tables::build(const RowsView& view, host::Compute& compute) {
  CHECK(view.rows == rows_, view.rows, rows_);
  Work work(*this, compute.workers());
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    const auto all = std::span(all_locals_).first(block_rows(block));
    work.locals.assign(all.begin(), all.end());
    hash_locals(view, block, work, compute);
    place_locals(block, work, compute);
  }
}

UpdateReport Tables::update(const RowsView& view, std::span<const std::uint32_t> changed,
                            host::Compute& compute) {
  CHECK(view.rows == rows_, view.rows, rows_);
  std::vector<std::uint32_t> due;
  for (const std::uint32_t row : changed) {
    CHECK(row < rows_, row, rows_);
    if (drift_.due(row)) due.push_back(row);
  }
  if (due.empty()) return {};
  std::ranges::sort(due);
  due.erase(std::unique(due.begin(), due.end()), due.end());
  Work work(*this, compute.workers());
  UpdateReport report = {.hashed = due.size()};
  for (std::size_t at = 0; at < due.size();) {
    const std::size_t block = due[at] / kBlockRows;
    work.locals.clear();
    for (; at < due.size() && due[at] / kBlockRows == block; ++at) {
      work.locals.push_back(static_cast<std::uint16_t>(due[at] % kBlockRows));
    }
    hash_locals(view, block, work, compute);
    report.sorted_blocks += place_locals(block, work, compute) ? 1 : 0;
  }
  return report;
}

void Tables::save(std::span<std::uint16_t> keys, std::span<float> allowances) const {
  CHECK(key_bits_ <= 16, key_bits_);
  CHECK(keys.size() == tables() * rows_ && allowances.size() == rows_, keys.size(), allowances.size());
  std::vector<std::uint32_t> one(rows_);
  for (std::size_t t = 0; t < tables(); ++t) {
    row_keys(t, one);
    std::ranges::transform(one, keys.begin() + static_cast<std::ptrdiff_t>(t * rows_),
                           [](std::uint32_t key) { return static_cast<std::uint16_t>(key); });
  }
  for (std::size_t row = 0; row < rows_; ++row) allowances[row] = drift_.left(row);
}

void Tables::restore(std::span<const std::uint16_t> keys, std::span<const float> allowances) {
  CHECK(key_bits_ <= 16, key_bits_);
  CHECK(keys.size() == tables() * rows_ && allowances.size() == rows_, keys.size(), allowances.size());
  std::vector<std::uint32_t> own(all_locals_.size());
  std::vector<std::uint16_t> none;
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    Block& b = blocks_[block];
    const std::size_t rows = block_rows(block);
    for (std::size_t t = 0; t < tables(); ++t) {
      std::ranges::copy(keys.subspan(t * rows_ + block * kBlockRows, rows), own.begin());
      b.base.fill(t, std::span(all_locals_).first(rows), own);
    }
    b.overlay = BucketBlock();
    none.clear();
    mask(b, none, rows);
  }
  for (std::size_t row = 0; row < rows_; ++row) drift_.reset(row, allowances[row]);
}

void Tables::row_keys(std::size_t table, std::span<std::uint32_t> keys) const {
  CHECK(keys.size() == rows_, keys.size(), rows_);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const auto own = keys.subspan(b * kBlockRows, block_rows(b));
    blocks_[b].base.decode(table, own);
    if (blocks_[b].overlay.entries() > 0) blocks_[b].overlay.decode(table, own);
  }
}

std::uint64_t Tables::bytes() const {
  std::uint64_t bytes = drift_.bytes() + all_locals_.size() * sizeof(std::uint16_t);
  for (const Block& b : blocks_) {
    bytes += b.base.bytes() + b.overlay.bytes() + b.moved.size() * sizeof(std::uint16_t) +
             b.masked.size() * sizeof(std::uint64_t);
  }
  return bytes;
}

}  // namespace gossamer::lsh
