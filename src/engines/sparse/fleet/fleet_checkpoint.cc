// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "learn/sparse/network/network_pieces.h"
#include "learn/sparse/network/row_order.h"
#include "tensors/fleet_files.h"

namespace gossamer::sparse_engine {
namespace {

std::string section_name(const FleetShape& shape, PieceId id) {
  if (id.layer == 0) return fmt::format("columns.{}", id.index);
  if (id.layer < shape.layers()) return fmt::format("units.{}.{}", id.layer, id.index);
  return fmt::format("rows.{}.{}", shape.shard_shift, id.index);
}

// The shift of a section of output rows.
std::optional<unsigned> shift_of(std::string_view section) {
  constexpr std::string_view kRows = "rows.";
  if (!section.starts_with(kRows)) return std::nullopt;
  section.remove_prefix(kRows.size());
  unsigned shift = 0;
  const auto [end, error] = std::from_chars(section.data(), section.data() + section.size(), shift);
  return error == std::errc() && shift <= sparse::kOneShardShift ? std::optional(shift) : std::nullopt;
}

// The files of a step belong to one run, whose shards all have one size. Without output rows in any file the
// size does not matter.
unsigned shift_of(const std::vector<tensors::CheckpointFile>& files) {
  for (const tensors::CheckpointFile& file : files) {
    for (const std::string& name : file.names()) {
      if (const auto shift = shift_of(name)) return *shift;
    }
  }
  return sparse::kOneShardShift;
}

void damaged(const tensors::CheckpointFile& file, const Error& error, EventSink events) {
  events("checkpoint_damaged", {{"file", file.path()}, {"error", error.message()}});
}

Error not_whole(const std::string& directory, StepNumber step) {
  return {.kind = ErrorKind::kBadData,
          .where = directory,
          .what = fmt::format("there is no whole checkpoint of step {}", step.value),
          .got = "files that lack a part of the network, or none",
          .expected = "what the nodes wrote when that step began",
          .fix = "resume the run with gossamer train --resume, which takes the newest whole one"};
}

}  // namespace

std::uint64_t most_part_bytes(const FleetShape& shape, const sparse::TableMoments& moments) {
  // Head, trailer and the facts of the run in the footer, with 100 losses.
  constexpr std::uint64_t kOfFile = std::uint64_t{64} << 10;
  // A section's line in the footer, and zero bytes before the section.
  constexpr std::uint64_t kOfSection = 256;
  std::uint64_t bytes = kOfFile;
  for (const PieceId& id : pieces_of(shape, sparse::whole(shape.network, shape.shard_shift)))
    bytes += kOfSection + sparse::piece_bytes(shape.network, moments, piece_of(shape, id));
  return bytes;
}

PartCopy::PartCopy(const FleetShape& shape, const sparse::TableMoments& moments, sparse::Network& part) {
  for (const PieceId& id : pieces_of(shape, part.part)) {
    const sparse::NetworkPiece piece = piece_of(shape, id);
    Section& section = sections_.emplace_back();
    section.name = section_name(shape, id);
    section.bytes.resize(sparse::piece_bytes(shape.network, moments, piece));
    sparse::save_piece(part, piece, section.bytes);
  }
}

Result<void> PartCopy::write(host::Disk& disk, const std::string& directory, NodeId node,
                             const tensors::CheckpointInfo& info) {
  std::vector<tensors::NamedTensor> tensors;
  for (Section& section : sections_) tensors.push_back({section.name, section.bytes});
  return tensors::write_fleet_file(disk, directory, node, info, tensors);
}

Result<void> check_part_file(host::Disk& disk, const std::string& path, const CheckpointedRun& run,
                             const OwnedFile& file) {
  std::map<std::string, std::uint64_t> sizes;
  for (const PieceId& id : file.owned)
    sizes[section_name(file.shape, id)] =
        sparse::piece_bytes(run.network, run.moments, piece_of(file.shape, id));
  const auto may_have = [&](const std::string& name, std::uint64_t bytes) {
    const auto found = sizes.find(name);
    return found != sizes.end() && found->second == bytes;
  };
  return tensors::check_fleet_file(disk, path, {.step = file.step, .fingerprint = run.fingerprint}, may_have);
}

// Gathers every readable file of a step, whether they are a whole checkpoint or not. Nothing if no file can
// be read.
Result<std::optional<FleetCheckpoint>> FleetCheckpoint::gather(host::Disk& disk, const std::string& directory,
                                                               const CheckpointedRun& run, StepNumber step,
                                                               EventSink events) {
  auto files = tensors::open_fleet_files(disk, directory, run.fingerprint, step, events);
  if (!files.ok()) return files.error();
  if (!files->has_value()) return std::optional<FleetCheckpoint>();
  FleetCheckpoint found;
  found.step_ = step;
  found.moments_ = run.moments;
  found.files_ = std::move((*files)->files);
  found.info_ = std::move((*files)->info);
  found.shape_ = {.network = run.network, .shard_shift = shift_of(found.files_)};
  found.find_pieces();
  return std::optional(std::move(found));
}

void FleetCheckpoint::find_pieces() {
  for (const PieceId& id : pieces_of(shape_, sparse::whole(shape_.network, shape_.shard_shift))) {
    const std::uint64_t bytes = sparse::piece_bytes(shape_.network, moments_, piece_of(shape_, id));
    const std::string name = section_name(shape_, id);
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].size_of(name) == bytes) pieces_[id].push_back(i);
    }
  }
}

// Verifies checksums. Forgets the damaged copies of pieces.
void FleetCheckpoint::verify(EventSink events) {
  for (auto& [id, files] : pieces_) {
    std::erase_if(files, [&](std::size_t i) {
      const auto section = files_[i].section(section_name(shape_, id));
      if (section.ok()) return false;
      damaged(files_[i], section.error(), events);
      return true;
    });
  }
  std::erase_if(pieces_, [](const auto& one) { return one.second.empty(); });
}

Result<std::optional<FleetCheckpoint>> FleetCheckpoint::open_newest(host::Disk& disk,
                                                                    const std::string& directory,
                                                                    const CheckpointedRun& run, Verify verify,
                                                                    EventSink events) {
  const auto all = tensors::list_fleet_files(disk, directory);
  if (!all.ok()) return all.error();
  for (auto step = all->rbegin(); step != all->rend(); ++step) {
    auto found = gather(disk, directory, run, step->first, events);
    if (!found.ok()) return found.error();
    if (!found->has_value() || !(*found)->whole()) continue;
    if (verify == Verify::kAll) (*found)->verify(events);
    if ((*found)->whole()) return found;
  }
  return std::optional<FleetCheckpoint>();
}

Result<FleetCheckpoint> FleetCheckpoint::open(host::Disk& disk, const std::string& directory,
                                              const CheckpointedRun& run, StepNumber step, EventSink events) {
  auto found = gather(disk, directory, run, step, events);
  if (!found.ok()) return found.error();
  if (!found->has_value() || !(*found)->whole()) return not_whole(directory, step);
  return **std::move(found);
}

// The first undamaged copy of a piece.
Result<std::span<const std::byte>> FleetCheckpoint::bytes_of(PieceId piece, EventSink events) const {
  const std::string name = section_name(shape_, piece);
  std::optional<Error> damage;
  for (const std::size_t i : pieces_.at(piece)) {
    const auto bytes = files_[i].section(name);
    if (bytes.ok()) return bytes;
    damaged(files_[i], bytes.error(), events);
    damage = bytes.error();
  }
  CHECK(damage.has_value(), name);
  return *damage;
}

Result<void> FleetCheckpoint::restore(sparse::Network& part, std::span<const std::uint32_t> label_count,
                                      EventSink events) const {
  const std::size_t layers = shape_.layers();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (const PieceId& id : pieces_of(shape_, layer, columns_of(part.part, layer))) {
      const auto bytes = bytes_of(id, events);
      if (!bytes.ok()) return bytes.error();
      sparse::load_piece(part, piece_of(shape_, id), *bytes);
    }
  }
  // The network's rows may lie in another order than the checkpoint's.
  const sparse::RowOrder order(label_count, shape_.shard_shift);
  const sparse::NetworkPiece rows{.layer = layers, .range = {0, shape_.network.labels}};
  sparse::PieceRows here(part, rows);
  const std::size_t row_bytes = here.row_bytes();
  std::map<std::size_t, std::span<const std::byte>> shards;
  for (std::uint32_t row = 0; row < shape_.network.labels; ++row) {
    if (!part.part.rows.contains(row)) continue;
    const std::size_t from = order.row_of(part.order.label_of(row));
    const std::size_t shard = from >> shape_.shard_shift;
    auto bytes = shards.find(shard);
    if (bytes == shards.end()) {
      const auto read = bytes_of({.layer = layers, .index = shard}, events);
      if (!read.ok()) return read.error();
      bytes = shards.emplace(shard, *read).first;
    }
    const std::size_t first = from - (shard << shape_.shard_shift);
    here.load(row, bytes->second.subspan(first * row_bytes, row_bytes));
  }
  return {};
}

}  // namespace gossamer::sparse_engine
