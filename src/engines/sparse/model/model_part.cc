// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/model_tensors.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine {
namespace {

// The part of a range that is below n.
host::Range within(host::Range range, std::size_t n) {
  return {std::min(range.begin, n), std::min(range.end, n)};
}

// The network's tensors, each with the function that takes its part.
class PartReader {
 public:
  PartReader(const sparse::NetworkShape& shape, const sparse::NetworkPart& part)
      : network_(shape, part, {.embedding = sparse::Moments::kNone, .output = sparse::Moments::kNone}) {
    const host::Range columns = within(part.columns, shape.hidden);
    expect("embedding.weight", {shape.features, shape.hidden},
           [this, columns](const tensors::TensorView& tensor) {
             return take_rows(tensor, {0, network_.shape.features}, columns, network_.embedding, 0);
           });
    std::size_t inputs = shape.hidden;
    for (std::size_t i = 0; i < shape.dense.size(); ++i) {
      expect_dense(i, within(part.units[i], shape.dense[i]), inputs);
      inputs = shape.dense[i];
    }
    expect("output.weight", {shape.labels, inputs}, [this, inputs](const tensors::TensorView& tensor) {
      return for_held([&](const host::Range& rows) {
        return take_rows(tensor, rows, {0, inputs}, network_.output, rows.begin);
      });
    });
    expect("output.bias", {shape.labels}, [this](const tensors::TensorView& tensor) {
      return for_held([&](const host::Range& rows) {
        return take(tensor, rows.begin, network_.bias.span().subspan(rows.begin, rows.end - rows.begin));
      });
    });
  }
  PartReader(const PartReader&) = delete;
  PartReader& operator=(const PartReader&) = delete;

  // Takes a tensor; tensors that are not the network's are ignored.
  Result<void> add(const std::string& path, const std::string& name, const tensors::TensorView& tensor) {
    const auto found = expected_.find(name);
    if (found == expected_.end()) return {};
    const Expected expected = std::move(found->second);
    expected_.erase(found);
    if (tensor.dtype != tensors::DType::kF32 || tensor.shape != expected.shape) {
      return bad_tensor(path, name,
                        fmt::format("{} [{}]", tensors::name(tensor.dtype), fmt::join(tensor.shape, ", ")),
                        fmt::format("F32 [{}]", fmt::join(expected.shape, ", ")));
    }
    if (!expected.take(tensor)) return bad_tensor(path, name, not_finite(tensor), "finite numbers");
    return {};
  }
  Result<sparse::Network> finish(const std::string& path) {
    if (expected_.empty()) return std::move(network_);
    return bad_tensor(path, expected_.begin()->first, "nothing", "the tensor in one of the shards");
  }

 private:
  struct Expected {
    std::vector<std::uint64_t> shape;
    std::function<bool(const tensors::TensorView&)> take;  // false: a number is not finite
  };

  void expect(std::string name, std::vector<std::uint64_t> shape,
              std::function<bool(const tensors::TensorView&)> take_it) {
    expected_[std::move(name)] = {std::move(shape), std::move(take_it)};
  }
  void expect_dense(std::size_t i, host::Range units, std::size_t inputs) {
    const std::uint64_t width = network_.shape.dense[i];
    expect(fmt::format("dense.{}.weight", i + 1), {width, inputs},
           [this, i, units, inputs](const tensors::TensorView& tensor) {
             return take_rows(tensor, units, {0, inputs}, network_.dense[i].weights, 0);
           });
    expect(fmt::format("dense.{}.bias", i + 1), {width}, [this, i, units](const tensors::TensorView& tensor) {
      return take(tensor, units.begin, network_.dense[i].bias.span().first(units.end - units.begin));
    });
  }

  bool for_held(const std::function<bool(const host::Range&)>& take_shard) const {
    const sparse::HeldRows& rows = network_.part.rows;
    for (std::size_t shard = 0; shard < rows.shards(); ++shard) {
      if (rows.holds(shard) && !take_shard(rows.rows_of(shard))) return false;
    }
    return true;
  }
  static bool take(const tensors::TensorView& tensor, std::size_t first, std::span<float> out) {
    const auto bytes = tensor.bytes.subspan(first * sizeof(float), out.size_bytes());
    std::ranges::copy(bytes, std::as_writable_bytes(out).begin());
    return std::ranges::all_of(out, [](float v) { return std::isfinite(v); });
  }
  // Takes those columns of those rows, to rows from `to` on.
  static bool take_rows(const tensors::TensorView& tensor, const host::Range& rows,
                        const host::Range& columns, sparse::RowTable& out, std::size_t to) {
    const std::size_t width = columns.end - columns.begin;
    if (width == 0) return true;
    bool finite = true;
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
      finite =
          take(tensor, row * tensor.shape[1] + columns.begin, {out.weights(to + row - rows.begin), width}) &&
          finite;
    }
    return finite;
  }

  sparse::Network network_;
  std::map<std::string, Expected, std::less<>> expected_;  // not seen yet
};

}  // namespace

sparse::NetworkShape network_shape(const ModelHeader& header) {
  return {.features = header.features,
          .labels = header.labels,
          .hidden = header.hidden,
          .dense = {header.dense.begin(), header.dense.end()}};
}

Result<ModelPart> load_model_part(host::Disk& disk, const std::string& directory,
                                  const sparse::NetworkPart& part, PartInstances instances,
                                  host::Compute& compute) {
  const auto opened = open_model_header(disk, directory);
  if (!opened.ok()) return opened.error();
  PartReader reader(network_shape(opened->header), part);
  std::optional<InstancePartReader> rows;
  if (instances == PartInstances::kShare) rows.emplace(opened->header, part.rows);
  std::vector<std::unique_ptr<host::MappedFile>> files;  // `rows` looks into them
  for (const tensors::ShardEntry& shard : opened->header.shards) {
    auto file = tensors::map_shard(disk, opened->directory, shard);
    if (!file.ok()) return file.error();
    const std::string path = opened->directory + "/" + shard.file;
    const auto tensors = tensors::parse_safetensors(path, (*file)->bytes());
    if (!tensors.ok()) return tensors.error();
    for (const auto& [name, tensor] : *tensors) {
      auto taken = reader.add(path, name, tensor);
      if (taken.ok() && rows) taken = rows->add(path, name, tensor);
      if (!taken.ok()) return taken.error();
    }
    if (rows) files.push_back(*std::move(file));
  }
  auto network = reader.finish(opened->directory);
  if (!network.ok()) return network.error();
  ModelPart loaded{.network = *std::move(network), .instances = {}};
  if (!rows) return loaded;
  auto share = rows->finish(opened->directory, compute);
  if (!share.ok()) return share.error();
  loaded.instances = *std::move(share);
  return loaded;
}

}  // namespace gossamer::sparse_engine
