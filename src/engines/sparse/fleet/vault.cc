// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/vault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/fleet_learner.h"

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

template <class T>
std::span<const std::byte> bytes_of(const T& values) {
  return std::as_bytes(std::span(values));
}

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

Slices make_delta(const FleetJob& job, const PieceSources& sources, const DeltaRequest& request) {
  std::vector<std::byte> out;
  for (const PieceId& id : request.keeps) {
    const auto source = sources.find(id);
    if (source == sources.end()) continue;
    const bool known = request.has.contains(id);
    const std::uint64_t since = known ? request.since.value : 0;
    const sparse::NetworkPiece piece = piece_of(job.shape, id);
    const std::size_t bytes = sparse::piece_row_bytes(job.shape.network, job.moments, piece);
    std::vector<std::uint32_t> changed;
    for (std::size_t row = 0; row < sparse::piece_rows(job.shape.network, piece); ++row) {
      if (sparse::last_step_of(*source->second, piece, row) > since)
        changed.push_back(static_cast<std::uint32_t>(row));
    }
    if (job.defect == FleetDefect::kStaleCopy && !changed.empty()) changed.pop_back();
    const PieceHead head{.layer = static_cast<std::uint32_t>(id.layer),
                         .index = static_cast<std::uint32_t>(id.index),
                         .from_initial = known ? 0U : 1U,
                         .rows = static_cast<std::uint32_t>(changed.size())};
    append(out, std::as_bytes(std::span(&head, 1)));
    append(out, bytes_of(changed));
    for (const std::uint32_t row : changed) {
      out.resize(out.size() + bytes);
      sparse::save_row(*source->second, piece, row, std::span(out).last(bytes));
    }
  }
  if (out.empty()) return {};
  return {Slice::of(std::move(out))};
}

std::vector<std::byte> Vault::initial(PieceId id) const {
  const sparse::NetworkPiece piece = piece_of(job_.shape, id);
  const auto network = initial_network(job_, part_of(job_.shape, piece));
  std::vector<std::byte> bytes(sparse::piece_bytes(job_.shape.network, job_.moments, piece));
  sparse::save_piece(*network, piece, bytes);
  return bytes;
}

Result<void> Vault::apply(StepNumber step, std::span<const Slices> deltas) {
  std::vector<std::vector<std::byte>> bytes;  // that changes refer to
  std::vector<Change> changes;
  for (const Slices& slices : deltas) {
    std::vector<std::byte>& delta = bytes.emplace_back(total_bytes(slices));
    copy_front(slices, delta);
    if (auto good = parse(delta, changes); !good.ok()) return good;
  }
  Copies next;
  for (const Change& change : changes) {
    std::vector<std::byte>& copy = next[change.id];
    copy = change.from_initial ? initial(change.id) : std::move(pieces_.at(change.id));
    const std::size_t row_bytes = change.numbers.empty() ? 0 : change.rows.size() / change.numbers.size();
    for (std::size_t i = 0; i < change.numbers.size(); ++i)
      std::memcpy(copy.data() + change.numbers[i] * row_bytes, change.rows.data() + i * row_bytes, row_bytes);
  }
  if (step == step_) next.merge(pieces_);
  pieces_ = std::move(next);
  step_ = step;
  return {};
}

Result<void> Vault::parse(std::span<const std::byte> delta, std::vector<Change>& changes) const {
  const auto take = [&delta](std::size_t bytes) {
    const auto taken = delta.first(bytes);
    delta = delta.subspan(bytes);
    return taken;
  };
  while (!delta.empty()) {
    PieceHead head;
    if (delta.size() < sizeof(head)) return unreadable("half a head");
    std::memcpy(&head, take(sizeof(head)).data(), sizeof(head));
    const PieceId id{.layer = head.layer, .index = head.index};
    if (!is_piece(job_.shape, id)) return unreadable(fmt::format("piece {} of layer {}", id.index, id.layer));
    const sparse::NetworkPiece piece = piece_of(job_.shape, id);
    const std::size_t row_bytes = sparse::piece_row_bytes(job_.shape.network, job_.moments, piece);
    const std::size_t rows = sparse::piece_rows(job_.shape.network, piece);
    if (head.rows > rows || delta.size() < head.rows * (sizeof(std::uint32_t) + row_bytes))
      return unreadable(fmt::format("{} rows in {} bytes", head.rows, delta.size()));
    if (head.from_initial == 0 && !has(id))
      return unreadable(
          fmt::format("changes of piece {} of layer {}, which is not here", id.index, id.layer));
    if (std::ranges::count(changes, id, &Change::id) != 0)
      return unreadable(fmt::format("piece {} of layer {} twice", id.index, id.layer));
    Change& change = changes.emplace_back();
    change.id = id;
    change.from_initial = head.from_initial != 0;
    change.numbers.resize(head.rows);
    std::ranges::copy(take(head.rows * sizeof(std::uint32_t)),
                      std::as_writable_bytes(std::span(change.numbers)).begin());
    change.rows = take(head.rows * row_bytes);
    for (const std::uint32_t row : change.numbers) {
      if (row >= rows) return unreadable(fmt::format("row {} of {}", row, rows));
    }
  }
  return {};
}

}  // namespace gossamer::engine
