// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/recovery/vault.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/payload_values.h"
#include "engines/sparse/fleet/step/value_bounds.h"

namespace gossamer::sparse_engine {
namespace {

// The head of a piece. The numbers of its rows follow, and then the rows.
struct PieceHead {
  std::uint32_t layer = 0;
  std::uint32_t index = 0;
  std::uint32_t from_initial = 0;  // 1: rows that are not sent have their initial values
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

// Rows of a snapshot lie in blocks of so many bytes, or of one row.
constexpr std::size_t kBlockBytes = std::size_t{256} << 10;

// Appends the rows with these numbers. Returns what is wrong with one of them.
std::optional<sparse::RowFault> add_rows(const sparse::PieceRows& rows,
                                         std::span<const std::uint32_t> numbers,
                                         const sparse::PieceRowCheck& check, const BlockPool& memory,
                                         Slices& out) {
  std::optional<sparse::RowFault> fault;
  const std::size_t row_bytes = rows.row_bytes();
  const std::size_t rows_of_block = std::max<std::size_t>(1, kBlockBytes / row_bytes);
  while (!numbers.empty()) {
    const auto these = numbers.first(std::min(rows_of_block, numbers.size()));
    auto block = memory.take(rows_of_block * row_bytes);
    for (std::size_t i = 0; i < these.size(); ++i) {
      const std::span<std::byte> row(block.get() + i * row_bytes, row_bytes);
      rows.save(these[i], row);
      if (!fault) fault = check.fault(row);
    }
    const std::span<const std::byte> bytes(block.get(), these.size() * row_bytes);
    out.emplace_back(std::move(block), bytes);
    numbers = numbers.subspan(these.size());
  }
  return fault;
}

// Appends the head of a piece, the numbers of its changed rows, and the rows. Returns what is wrong with one
// of them.
std::optional<sparse::RowFault> add_changes(const FleetJob& job, sparse::Network& from, PieceId id,
                                            const DeltaRequest& request, Slices& out) {
  const bool known = request.has.contains(id);
  const StepNumber since = known ? request.since : StepNumber();
  const sparse::NetworkPiece piece = piece_of(job.shape, id);
  const sparse::PieceRows here(from, piece);
  std::vector<std::uint32_t> changed;
  for (std::size_t row = 0; row < here.size(); ++row) {
    if (here.last_step(row) > since.value) changed.push_back(static_cast<std::uint32_t>(row));
  }
  if (!job.guarded(FleetDefect::kStaleCopy) && !changed.empty()) changed.pop_back();
  const PieceHead head{.layer = static_cast<std::uint32_t>(id.layer),
                       .index = static_cast<std::uint32_t>(id.index),
                       .from_initial = known ? 0U : 1U,
                       .rows = static_cast<std::uint32_t>(changed.size())};
  std::vector<std::byte> front;
  append_values(std::span(&head, 1), front);
  append_values(std::span<const std::uint32_t>(changed), front);
  out.push_back(Slice::of(std::move(front)));
  return add_rows(here, changed, row_check(job, piece, RowsAre::kGiven, request.step), request.memory, out);
}

}  // namespace

Result<Slices> make_delta(const FleetJob& job, const PieceSources& sources, const DeltaRequest& request) {
  Slices out;
  for (const PieceId& id : request.keeps) {
    const auto source = sources.find(id);
    if (source == sources.end()) continue;
    if (const auto fault = add_changes(job, *source->second, id, request, out)) return diverged(*fault);
  }
  return out;
}

std::optional<sparse::RowFault> fault_of(const FleetJob& job, const Slices& copy,
                                         const sparse::NetworkPiece& piece, StepNumber step) {
  const sparse::PieceRowCheck check = row_check(job, piece, RowsAre::kTaken, step);
  std::vector<std::byte> row(sparse::piece_row_bytes(job.shape.network, job.moments, piece));
  for (SliceReader rows(copy); rows.left() > 0;) {
    rows.read(row);
    const bool updated = std::ranges::any_of(row, [](std::byte byte) { return byte != std::byte{}; });
    if (!updated) continue;
    if (const auto fault = check.fault(row)) return fault;
  }
  return std::nullopt;
}

std::uint64_t Vault::most_bytes(const FleetJob& job, const Pieces& pieces) {
  std::uint64_t bytes = 0;
  for (const PieceId& id : pieces) {
    const sparse::NetworkPiece piece = piece_of(job.shape, id);
    bytes += sizeof(PieceHead) + sparse::piece_rows(job.shape.network, piece) * sizeof(std::uint32_t) +
             sparse::piece_bytes(job.shape.network, job.moments, piece);
  }
  return bytes;
}

Result<void> Vault::check(const Slices& delta, const DeltaExpected& expected) const {
  std::vector<Change> changes;
  if (auto good = parse(SliceReader(delta), changes); !good.ok()) return good;
  Pieces got;
  for (const Change& change : changes) got.insert(change.id);
  if (got != expected.pieces)
    return unreadable(
        fmt::format("{} pieces, not the {} that it holds for this node", got.size(), expected.pieces.size()));
  std::vector<std::byte> row;
  for (Change& change : changes) {
    const sparse::PieceRowCheck check =
        row_check(job_, piece_of(job_.shape, change.id), RowsAre::kTaken, expected.step);
    if (change.numbers.empty()) continue;
    SliceReader rows(std::move(change.rows));
    row.resize(rows.left() / change.numbers.size());
    for (const std::uint32_t number : change.numbers) {
      rows.read(row);
      if (const auto fault = check.fault(row))
        return unreadable(fmt::format("row {} of piece {} of layer {}, with {} that cannot be", number,
                                      change.id.index, change.id.layer, name(*fault)));
    }
  }
  return {};
}

Result<void> Vault::apply(StepNumber step, std::span<const Slices> deltas) {
  std::vector<Change> changes;
  for (const Slices& delta : deltas) {
    if (auto good = parse(SliceReader(delta), changes); !good.ok()) return good;
  }
  Copies next;
  for (Change& change : changes) {
    AlignedArray<std::byte>& copy = next[change.id];
    copy = change.from_initial ? AlignedArray<std::byte>(sparse::piece_bytes(job_.shape.network, job_.moments,
                                                                             piece_of(job_.shape, change.id)))
                               : std::move(pieces_.at(change.id));
    if (change.numbers.empty()) continue;
    SliceReader rows(std::move(change.rows));
    const std::size_t row_bytes = rows.left() / change.numbers.size();
    for (const std::uint32_t row : change.numbers) rows.read(copy.span().subspan(row * row_bytes, row_bytes));
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
    if (std::ranges::adjacent_find(change.numbers, std::greater_equal()) != change.numbers.end())
      return unreadable("rows that do not rise");
  }
  return {};
}

}  // namespace gossamer::sparse_engine
