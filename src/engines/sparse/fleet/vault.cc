// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/vault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace gossamer::engine {
namespace {

// Before the rows of a piece: their numbers, then the rows.
struct PieceHead {
  std::uint32_t layer = 0;
  std::uint32_t index = 0;
  std::uint32_t from_initial = 0;  // 1: what is not sent has its initial values
  std::uint32_t rows = 0;
};

Error unreadable(const std::string& got) {
  return {.kind = ErrorKind::kBadData,
          .where = "a snapshot",
          .what = "a member sent what is no snapshot of its part",
          .got = got,
          .expected = "changed rows of pieces that this node keeps",
          .fix = "look whether all nodes run the same version"};
}

// A head, the numbers of the rows, the rows.
Slice changes_of(const FleetJob& job, sparse::Network& from, PieceId id, std::optional<StepNumber> since) {
  const sparse::NetworkPiece piece = piece_of(job.shape, id);
  const sparse::PieceRows here(from, piece);
  std::vector<std::uint32_t> changed;
  for (std::size_t row = 0; row < here.size(); ++row) {
    if (here.last_step(row) > since.value_or(StepNumber()).value)
      changed.push_back(static_cast<std::uint32_t>(row));
  }
  if (job.defect == FleetDefect::kStaleCopy && !changed.empty()) changed.pop_back();
  const PieceHead head{.layer = static_cast<std::uint32_t>(id.layer),
                       .index = static_cast<std::uint32_t>(id.index),
                       .from_initial = since ? 0U : 1U,
                       .rows = static_cast<std::uint32_t>(changed.size())};
  const std::size_t row_bytes = sparse::piece_row_bytes(job.shape.network, job.moments, piece);
  const std::size_t bytes = sizeof(head) + changed.size() * (sizeof(std::uint32_t) + row_bytes);
  auto memory = std::make_shared_for_overwrite<std::byte[]>(bytes);
  const std::span<std::byte> all(memory.get(), bytes);
  std::memcpy(all.data(), &head, sizeof(head));
  const std::span<std::byte> numbers = all.subspan(sizeof(head), changed.size() * sizeof(std::uint32_t));
  std::ranges::copy(std::as_bytes(std::span(changed)), numbers.begin());
  std::span<std::byte> rows = all.subspan(sizeof(head) + numbers.size());
  for (const std::uint32_t row : changed) {
    here.save(row, rows.first(row_bytes));
    rows = rows.subspan(row_bytes);
  }
  return {std::move(memory), all};
}

}  // namespace

Slices make_delta(const FleetJob& job, const PieceSources& sources, const DeltaRequest& request) {
  Slices out;
  for (const PieceId& id : request.keeps) {
    const auto source = sources.find(id);
    if (source == sources.end()) continue;
    const bool known = request.has.contains(id);
    out.push_back(changes_of(job, *source->second, id, known ? std::optional(request.since) : std::nullopt));
  }
  return out;
}

Result<void> Vault::apply(StepNumber step, std::span<const Slices> deltas) {
  std::vector<Change> changes;
  for (const Slices& delta : deltas) {
    if (auto good = parse(SliceReader(delta), changes); !good.ok()) return good;
  }
  Copies next;
  std::vector<std::byte> rows;  // of one piece, without the seams between messages
  for (const Change& change : changes) {
    AlignedArray<std::byte>& copy = next[change.id];
    copy = change.from_initial ? AlignedArray<std::byte>(sparse::piece_bytes(job_.shape.network, job_.moments,
                                                                             piece_of(job_.shape, change.id)))
                               : std::move(pieces_.at(change.id));
    if (change.numbers.empty()) continue;
    rows.resize(total_bytes(change.rows));
    copy_front(change.rows, rows);
    const std::size_t row_bytes = rows.size() / change.numbers.size();
    for (std::size_t i = 0; i < change.numbers.size(); ++i)
      std::memcpy(copy.data() + change.numbers[i] * row_bytes, rows.data() + i * row_bytes, row_bytes);
  }
  if (step == step_) next.merge(pieces_);
  pieces_ = std::move(next);
  step_ = step;
  return {};
}

Result<void> Vault::parse(SliceReader delta, std::vector<Change>& changes) const {
  while (delta.left() > 0) {
    PieceHead head;
    if (delta.left() < sizeof(head)) return unreadable("half a head");
    copy_front(delta.take(sizeof(head)), std::as_writable_bytes(std::span(&head, 1)));
    const PieceId id{.layer = head.layer, .index = head.index};
    if (!is_piece(job_.shape, id)) return unreadable(fmt::format("piece {} of layer {}", id.index, id.layer));
    const sparse::NetworkPiece piece = piece_of(job_.shape, id);
    const std::size_t row_bytes = sparse::piece_row_bytes(job_.shape.network, job_.moments, piece);
    const std::size_t rows = sparse::piece_rows(job_.shape.network, piece);
    if (head.rows > rows || delta.left() < head.rows * (sizeof(std::uint32_t) + row_bytes))
      return unreadable(fmt::format("{} rows in {} bytes", head.rows, delta.left()));
    if (head.from_initial == 0 && !has(id))
      return unreadable(
          fmt::format("changes of piece {} of layer {}, which is not here", id.index, id.layer));
    if (std::ranges::count(changes, id, &Change::id) != 0)
      return unreadable(fmt::format("piece {} of layer {} twice", id.index, id.layer));
    Change& change = changes.emplace_back();
    change.id = id;
    change.from_initial = head.from_initial != 0;
    change.numbers.resize(head.rows);
    copy_front(delta.take(head.rows * sizeof(std::uint32_t)),
               std::as_writable_bytes(std::span(change.numbers)));
    change.rows = delta.take(head.rows * row_bytes);
    for (const std::uint32_t row : change.numbers) {
      if (row >= rows) return unreadable(fmt::format("row {} of {}", row, rows));
    }
  }
  return {};
}

}  // namespace gossamer::engine
