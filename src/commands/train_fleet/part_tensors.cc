// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/part_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kFloat = sizeof(float);

tensors::TensorSource tensor(std::string name, std::vector<std::uint64_t> shape,
                             std::function<void(std::uint64_t, std::span<std::byte>)> read_row) {
  return {.name = std::move(name),
          .dtype = tensors::DType::kF32,
          .shape = std::move(shape),
          .read_row = std::move(read_row)};
}

// Takes floats from the front of a part's weights.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  const std::byte* take(std::size_t floats) {
    const std::byte* const at = bytes_.data();
    fits_ = fits_ && bytes_.size() >= floats * kFloat;
    if (fits_) bytes_ = bytes_.subspan(floats * kFloat);
    return at;
  }
  [[nodiscard]] bool all_taken() const { return fits_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool fits_ = true;
};

}  // namespace

Result<std::shared_ptr<const PartTensors>> PartTensors::open(host::Disk& disk,
                                                             const std::vector<PartFile>& parts,
                                                             const sparse_engine::FleetShape& shape,
                                                             const sparse::RowOrder& order) {
  CHECK(cover(parts, shape));
  std::shared_ptr<PartTensors> all(new PartTensors(shape, order));
  for (const PartFile& one : parts) {
    auto mapped = map_part(disk, one);
    if (!mapped.ok()) return mapped.error();
    if (!all->add(*mapped)) return damaged_part(one.path, "weights of another shape");
    all->files_.push_back(mapped->file);
  }
  return std::shared_ptr<const PartTensors>(std::move(all));
}

// The number of values in a row of the layer.
std::size_t PartTensors::inputs(std::size_t layer) const {
  return layer <= 1 ? shape_.network.hidden : shape_.network.dense[layer - 2];
}

bool PartTensors::add(const MappedPart& part) {
  const sparse::NetworkPart& held = part.header.part;
  Cursor weights(part.weights);
  const host::Range columns = without_padding(held.columns, shape_.network.hidden);
  const std::size_t width = columns.end - columns.begin;
  if (width > 0) layers_[0].push_back({columns, weights.take(shape_.network.features * width)});
  for (std::size_t layer = 1; layer < shape_.layers(); ++layer) {
    const host::Range units = without_padding(held.units[layer - 1], shape_.network.dense[layer - 1]);
    const std::size_t count = units.end - units.begin;
    if (count == 0) continue;
    const std::byte* const rows = weights.take(count * inputs(layer));
    layers_[layer].push_back({units, rows, weights.take(count)});
  }
  for (std::size_t shard = 0; shard < held.rows.shards(); ++shard) {
    if (!held.rows.holds(shard)) continue;
    const host::Range range = held.rows.rows_of(shard);
    const std::byte* const rows = weights.take((range.end - range.begin) * shape_.network.last_hidden());
    shards_[shard] = {rows, weights.take(range.end - range.begin)};
  }
  return weights.all_taken();
}

const PartTensors::Run& PartTensors::run_with(std::size_t layer, std::size_t unit) const {
  const auto found = std::ranges::find_if(
      layers_[layer], [unit](const Run& run) { return run.range.begin <= unit && unit < run.range.end; });
  CHECK(found != layers_[layer].end(), layer, unit);
  return *found;
}

tensors::TensorSource PartTensors::embedding() const {
  return tensor("embedding.weight", {shape_.network.features, shape_.network.hidden},
                [this](std::uint64_t feature, std::span<std::byte> out) {
                  for (const Run& run : layers_[0]) {
                    const std::size_t bytes = (run.range.end - run.range.begin) * kFloat;
                    if (bytes > 0)
                      std::memcpy(out.data() + run.range.begin * kFloat, run.weights + feature * bytes,
                                  bytes);
                  }
                });
}

tensors::TensorSource PartTensors::dense(std::size_t layer) const {
  return tensor(fmt::format("dense.{}.weight", layer), {shape_.network.dense[layer - 1], inputs(layer)},
                [this, layer](std::uint64_t unit, std::span<std::byte> out) {
                  const Run& run = run_with(layer, unit);
                  std::memcpy(out.data(), run.weights + (unit - run.range.begin) * out.size(), out.size());
                });
}

tensors::TensorSource PartTensors::dense_bias(std::size_t layer) const {
  return tensor(fmt::format("dense.{}.bias", layer), {shape_.network.dense[layer - 1]},
                [this, layer](std::uint64_t unit, std::span<std::byte> out) {
                  const Run& run = run_with(layer, unit);
                  std::memcpy(out.data(), run.bias + (unit - run.range.begin) * kFloat, kFloat);
                });
}

tensors::TensorSource PartTensors::output() const {
  return tensor("output.weight", {shape_.network.labels, shape_.network.last_hidden()},
                [this](std::uint64_t label, std::span<std::byte> out) {
                  const std::size_t row = order_.row_of(static_cast<std::uint32_t>(label));
                  const std::size_t shard = row >> shape_.shard_shift;
                  const std::size_t at = row - (shard << shape_.shard_shift);
                  std::memcpy(out.data(), shards_[shard].weights + at * out.size(), out.size());
                });
}

tensors::TensorSource PartTensors::output_bias() const {
  return tensor("output.bias", {shape_.network.labels},
                [this](std::uint64_t label, std::span<std::byte> out) {
                  const std::size_t row = order_.row_of(static_cast<std::uint32_t>(label));
                  const std::size_t shard = row >> shape_.shard_shift;
                  const std::size_t at = row - (shard << shape_.shard_shift);
                  std::memcpy(out.data(), shards_[shard].bias + at * kFloat, kFloat);
                });
}

std::vector<tensors::TensorSource> PartTensors::tensors() const {
  std::vector<tensors::TensorSource> all{embedding()};
  for (std::size_t layer = 1; layer < shape_.layers(); ++layer) {
    all.push_back(dense(layer));
    all.push_back(dense_bias(layer));
  }
  all.push_back(output());
  all.push_back(output_bias());
  return all;
}

}  // namespace gossamer::commands
