// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/label_lists.h"
#include "engines/sparse/fleet/step/layout.h"

namespace gossamer::sparse_engine {
namespace {

// The exchanged numbers are not rounded: the lists must be those of one process.
constexpr net::Codec kCodec = net::Codec::kF32;

std::size_t width_of(const host::Range& range) { return range.end - range.begin; }

Error no_rank(std::uint32_t rank) {
  return {.kind = ErrorKind::kBadData,
          .where = "evaluation",
          .what = "a member gave a rank that there is not",
          .got = fmt::format("{}", rank),
          .expected = fmt::format("0..{}", kEvaluationDepth),
          .fix = "look whether all members run the same version"};
}

}  // namespace

FleetEvaluation::FleetEvaluation(const FleetJob& job, const sparse::Network& network,
                                 std::vector<sparse::NetworkPart> parts, std::size_t rank)
    : job_(job),
      parts_(std::move(parts)),
      me_(rank),
      records_(job.test->records),
      rounds_(job.shape.layers() + 1),
      wished_(std::max<std::size_t>(job.test->fusion.candidates, kEvaluationDepth)),
      codec_(job.kernels, kQueryBlock),
      scorer_(network, job.learner.activation, job.kernels, job.compute),
      due_(parts_.size()) {
  CHECK(rank < parts_.size(), rank, parts_.size());
  strides_.push_back(sparse::row_stride(job.shape.network.hidden));
  for (const std::size_t units : job.shape.network.dense) strides_.push_back(sparse::row_stride(units));
  for (const std::size_t stride : strides_) hidden_.emplace_back(kQueryBlock * stride);
  for (int w = 0; w < job.compute.workers(); ++w)
    fusions_.emplace_back(job.test->fusion, kNetAlone, Fusion::Sources());
}

host::Range FleetEvaluation::block_of(std::uint64_t block) const {
  const std::uint64_t begin = block * kQueryBlock;
  return {begin, std::min<std::uint64_t>(begin + kQueryBlock, records_)};
}

host::Range FleetEvaluation::merged_by(std::size_t rank, std::uint64_t block) const {
  return host::worker_range(width_of(block_of(block)), static_cast<int>(rank),
                            static_cast<int>(parts_.size()));
}

std::size_t FleetEvaluation::limit(std::size_t rank) const { return list_limit(parts_[rank].rows, wished_); }

cluster::Operation FleetEvaluation::operation(std::uint64_t exchange) const {
  const std::uint64_t block = exchange / rounds_;
  const std::uint64_t round = exchange % rounds_;
  cluster::Operation operation;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    if (block == blocks()) {
      operation.parts.push_back(std::accumulate(due_[rank].begin(), due_[rank].end(), std::uint64_t{0}) *
                                sizeof(std::uint32_t));
    } else if (round + 1 < rounds_) {
      const std::size_t columns = width_of(columns_of(parts_[rank], round));
      operation.parts.push_back(net::encoded_bytes(kCodec, {.rows = kQueryBlock, .columns = columns}));
    } else {
      operation.kind = cluster::OperationKind::kAllToAll;
      operation.parts.push_back(list_bytes(width_of(merged_by(rank, block)), limit(me_)));
      operation.from.push_back(list_bytes(width_of(merged_by(me_, block)), limit(rank)));
    }
  }
  return operation;
}

Result<Slices> FleetEvaluation::round(std::uint64_t exchange, std::span<const Slices> got) {
  const std::uint64_t block = exchange / rounds_;
  const std::uint64_t round = exchange % rounds_;
  if (exchange == exchanges()) {
    if (auto taken = take_ranks(got); !taken.ok()) return taken.error();
    return Slices();
  }
  if (round == 0 && block > 0) {
    if (auto taken = take_lists(block - 1, got); !taken.ok()) return taken.error();
  }
  if (block == blocks()) return Slices{Slice::copy_of(std::as_bytes(std::span(own_ranks_)))};
  if (round == 0) {
    begin_block(block);
    scorer_.embed(batch_.features, hidden(0));
    return give_hidden(0);
  }
  take_hidden(round - 1, got);
  if (round + 1 == rounds_) return give_lists(block);
  scorer_.deepen(round, batch_.size(), hidden(round - 1), hidden(round));
  return give_hidden(round);
}

void FleetEvaluation::begin_block(std::uint64_t block) {
  batch_ = job_.test->reader.read_records(block_of(block));
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const host::Range merged = merged_by(rank, block);
    due_[rank].push_back(batch_.labels.begin[merged.end] - batch_.labels.begin[merged.begin]);
  }
}

Slices FleetEvaluation::give_hidden(std::size_t layer) const {
  return codec_.encode(kCodec, hidden_[layer].span(), strides_[layer], columns_of(parts_[me_], layer)).bytes;
}

void FleetEvaluation::take_hidden(std::size_t layer, std::span<const Slices> got) {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    if (rank != me_)
      codec_.copy({columns_of(parts_[rank], layer), kCodec, got[rank]}, strides_[layer],
                  hidden_[layer].span());
  }
}

Slices FleetEvaluation::give_lists(std::uint64_t block) {
  const std::size_t k = limit(me_);
  if (batch_.size() > 0) scorer_.search({hidden_.back().data(), strides_.back(), batch_.size()}, k);
  Slices all;
  std::vector<Scored> list;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const host::Range merged = merged_by(rank, block);
    std::vector<std::byte> bytes;
    bytes.reserve(list_bytes(width_of(merged), k));
    for (std::size_t record = merged.begin; record < merged.end; ++record) {
      list.clear();
      scorer_.found(record, list);
      append_list(list, k, bytes);
    }
    all.push_back(Slice::of(std::move(bytes)));
  }
  return all;
}

Result<void> FleetEvaluation::take_lists(std::uint64_t block, std::span<const Slices> got) {
  const host::Range merged = merged_by(me_, block);
  const std::size_t first = block_of(block).begin;
  answered_ = {first + merged.begin, first + merged.end};
  std::vector<std::vector<Scored>> lists(width_of(merged));
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    auto added = add_lists(got[rank], limit(rank), parts_[rank].rows, job_.order, lists);
    if (!added.ok()) return added;
  }
  rank_answers(lists);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const auto answer = answers_.row(i);
    for (const std::uint32_t label : batch_.labels.row(merged.begin + i)) {
      const auto at = std::ranges::find(answer, label, &Scored::id);
      own_ranks_.push_back(at == answer.end() ? 0 : static_cast<std::uint32_t>(at - answer.begin()) + 1);
    }
  }
  return {};
}

// Ranks as a prediction by the net alone does: scores are relative to the best.
void FleetEvaluation::rank_answers(std::span<std::vector<Scored>> lists) {
  answers_.top_k = kEvaluationDepth;
  answers_.count.assign(lists.size(), 0);
  answers_.entries.assign(lists.size() * kEvaluationDepth, {});
  job_.compute.run([&](int worker) {
    const host::Range mine = host::worker_range(lists.size(), worker, job_.compute.workers());
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      rank_list(wished_, lists[i]);
      const auto out = std::span(answers_.entries).subspan(i * kEvaluationDepth, kEvaluationDepth);
      answers_.count[i] = static_cast<std::uint32_t>(
          fusions_[static_cast<std::size_t>(worker)].rank({.net = lists[i]}, kEvaluationDepth, out));
    }
  });
}

Result<void> FleetEvaluation::take_ranks(std::span<const Slices> got) {
  std::vector<std::vector<std::uint32_t>> given(parts_.size());
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    given[rank].resize(total_bytes(got[rank]) / sizeof(std::uint32_t));
    copy_front(got[rank], std::as_writable_bytes(std::span(given[rank])));
    const auto wrong = std::ranges::find_if(given[rank], [](auto one) { return one > kEvaluationDepth; });
    if (wrong != given[rank].end()) return no_rank(*wrong);
  }
  std::vector<std::size_t> at(parts_.size());
  for (std::uint64_t block = 0; block < blocks(); ++block) {
    for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
      const auto from = std::span(given[rank]).subspan(at[rank], due_[rank][block]);
      ranks_.insert(ranks_.end(), from.begin(), from.end());
      at[rank] += from.size();
    }
  }
  return {};
}

}  // namespace gossamer::sparse_engine
