// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/part_file.h"

#include <fmt/format.h>
#include <gossamer/sparse_fleet.pb.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/digest.h"
#include "base/function_ref.h"
#include "engines/sparse/fleet/step/layout_message.h"
#include "host/api/files.h"
#include "tensors/buffered_file.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kNumber = sizeof(std::uint64_t);
constexpr std::uint64_t kMostHeader = std::uint64_t{16} << 20;  // a part's runs and shards take far less
constexpr std::string_view kPrefix = "part-";

using Visit = FunctionRef<void(std::span<float>)>;

// Visits the weights of `part`. `network` has at least that part.
void visit_weights(sparse::Network& network, const sparse::NetworkPart& part, Visit visit) {
  const auto run = [&](float* begin, std::size_t count) {
    if (count > 0) visit(std::span(begin, count));
  };
  const host::Range columns = without_padding(part.columns, network.shape.hidden);
  for (std::size_t row = 0; row < network.shape.features && columns.begin < columns.end; ++row)
    run(network.embedding.weights(row) + (columns.begin - network.part.columns.begin),
        columns.end - columns.begin);
  for (std::size_t i = 0; i < network.dense.size(); ++i) {
    sparse::DenseLayer& layer = network.dense[i];
    const host::Range units = without_padding(part.units[i], network.shape.dense[i]);
    const std::size_t first = network.part.units[i].begin;
    for (std::size_t unit = units.begin; unit < units.end; ++unit)
      run(layer.weights.weights(unit - first), layer.weights.width());
    if (units.begin < units.end) run(layer.bias.data() + (units.begin - first), units.end - units.begin);
  }
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (!part.rows.holds(shard)) continue;
    const host::Range rows = part.rows.rows_of(shard);
    for (std::size_t row = rows.begin; row < rows.end; ++row)
      run(network.output.weights(row), network.output.width());
    run(network.bias.data() + rows.begin, rows.end - rows.begin);
  }
}

// Bytes of what visit_weights() visits.
std::uint64_t weights_bytes(const sparse_engine::FleetShape& shape, const sparse::NetworkPart& part) {
  const host::Range columns = without_padding(part.columns, shape.network.hidden);
  std::uint64_t floats = shape.network.features * (columns.end - columns.begin);
  std::size_t inputs = shape.network.hidden;
  for (std::size_t i = 0; i < shape.network.dense.size(); ++i) {
    const host::Range units = without_padding(part.units[i], shape.network.dense[i]);
    floats += (units.end - units.begin) * (inputs + 1);
    inputs = shape.network.dense[i];
  }
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    const host::Range rows = part.rows.rows_of(shard);
    if (part.rows.holds(shard)) floats += (rows.end - rows.begin) * (inputs + 1);
  }
  return floats * sizeof(float);
}

// A file that sums up the bytes it writes.
class SummedFile {
 public:
  explicit SummedFile(host::WritableFile& file) : file_(file) {}
  void append(std::span<const std::byte> bytes) {
    if (!done_.ok()) return;
    sum_.add(bytes);
    done_ = file_.append(bytes);
  }
  // Writes the sum itself. Returns the first error of all writes.
  [[nodiscard]] Result<void> finish() {
    const std::uint64_t sum = sum_.value();
    append(std::as_bytes(std::span(&sum, 1)));
    if (!done_.ok()) return done_;
    return file_.flush();
  }

 private:
  tensors::BufferedFile file_;
  Digest sum_;
  Result<void> done_;
};

Result<void> write_part(host::WritableFile& file, const std::string& header, const sparse::NetworkPart& part,
                        sparse::Network& network) {
  SummedFile out(file);
  const std::uint64_t size = header.size();
  out.append(std::as_bytes(std::span(&size, 1)));
  out.append(std::as_bytes(std::span(header.data(), header.size())));
  visit_weights(network, part, [&](std::span<float> run) { out.append(std::as_bytes(run)); });
  if (auto done = out.finish(); !done.ok()) return done;
  if (auto done = file.sync(); !done.ok()) return done;
  return file.close();
}

std::uint64_t number_at(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), kNumber);
  return number;
}

// Bytes of the header within the file; nothing if it has none.
std::optional<std::span<const std::byte>> header_bytes(std::span<const std::byte> file) {
  if (file.size() < 2 * kNumber) return std::nullopt;
  const std::uint64_t size = number_at(file);
  if (size > kMostHeader || size > file.size() - 2 * kNumber) return std::nullopt;
  return file.subspan(kNumber, size);
}

Result<PartHeader> read_header(const std::string& path, std::span<const std::byte> file,
                               const sparse_engine::FleetShape& shape) {
  const auto bytes = header_bytes(file);
  sparse_fleet::Delivered message;
  if (!bytes || !message.ParseFromArray(bytes->data(), static_cast<int>(bytes->size())))
    return damaged_part(path, "no header");
  auto part = sparse_engine::read_part(message.part(), shape);
  if (!part) return damaged_part(path, "a part of another network");
  return PartHeader{.node = NodeId(message.node()),
                    .step = StepNumber(message.step()),
                    .part = *std::move(part),
                    .run = message.run()};
}

Result<void> load_part(host::Disk& disk, const PartFile& part, sparse::Network& network) {
  const auto mapped = map_part(disk, part);
  if (!mapped.ok()) return mapped.error();
  std::span<const std::byte> rest = mapped->weights;
  bool fits = true;
  visit_weights(network, part.header.part, [&](std::span<float> run) {
    fits = fits && rest.size() >= run.size_bytes();
    if (!fits || run.empty()) return;
    std::memcpy(run.data(), rest.data(), run.size_bytes());
    rest = rest.subspan(run.size_bytes());
  });
  if (fits && rest.empty()) return {};
  return damaged_part(part.path, "weights of another shape");
}

}  // namespace

host::Range without_padding(const host::Range& range, std::size_t width) {
  return {std::min(range.begin, width), std::min(range.end, width)};
}

Error damaged_part(const std::string& path, std::string got) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "a node's part of the network is damaged",
          .got = std::move(got),
          .expected = "the part as the node wrote it",
          .fix = "look after the disk, and train again"};
}

Result<MappedPart> map_part(host::Disk& disk, const PartFile& part) {
  auto mapped = disk.map(part.path);
  if (!mapped.ok()) return mapped.error();
  const std::shared_ptr<const host::MappedFile> kept = *std::move(mapped);
  const std::span<const std::byte> file = kept->bytes();
  const auto header = header_bytes(file);
  if (!header) return damaged_part(part.path, "no header");
  const std::span<const std::byte> rest = file.subspan(kNumber + header->size());
  const std::uint64_t sum = number_at(rest.last(kNumber));
  if (XXH3_64bits(file.data(), file.size() - kNumber) != sum)
    return damaged_part(part.path, "a wrong checksum");
  return MappedPart{.header = part.header, .file = kept, .weights = rest.first(rest.size() - kNumber)};
}

std::string part_name(const PartName& part) {
  return fmt::format("{}{}-{}", kPrefix, part.node.value, part.step.value);
}

std::optional<PartName> read_part_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  PartName part;
  const char* const last = name.data() + name.size();
  const auto [dash, error] = std::from_chars(name.data() + kPrefix.size(), last, part.node.value);
  if (error != std::errc() || dash == last || *dash != '-') return std::nullopt;
  const auto [end, other] = std::from_chars(dash + 1, last, part.step.value);
  return other == std::errc() && end == last ? std::optional(part) : std::nullopt;
}

Result<void> check_part(host::Disk& disk, const std::string& path, const OwnedPart& part) {
  const auto bytes = disk.map(path);
  if (!bytes.ok()) return bytes.error();
  const auto header = read_header(path, (*bytes)->bytes(), part.shape);
  if (!header.ok()) return header.error();
  if (header->node != part.name.node || header->step != part.name.step)
    return damaged_part(path, fmt::format("node {}'s of step {}", header->node.value, header->step.value));
  if (!header->run.empty() && header->run != part.run) return damaged_part(path, "a part of another run");
  if (!std::ranges::includes(part.owned, sparse_engine::pieces_of(part.shape, header->part)))
    return damaged_part(path, "more of the network than the node owned");
  const auto mapped = map_part(disk, {.path = path, .header = *header});
  if (!mapped.ok()) return mapped.error();
  if (mapped->weights.size() != weights_bytes(part.shape, header->part))
    return damaged_part(path, "weights of another shape");
  return {};
}

Result<void> save_part(host::Disk& disk, const std::string& directory, const PartHeader& header,
                       sparse::Network& network) {
  sparse_fleet::Delivered message;
  message.set_node(header.node.value);
  message.set_step(header.step.value);
  message.set_run(header.run);
  sparse_engine::write_part(header.part, *message.mutable_part());
  if (auto made = disk.make_directories(directory); !made.ok()) return made;
  const std::string path = directory + "/" + part_name({.node = header.node, .step = header.step});
  const std::string unfinished = path + ".tmp";
  auto file = disk.open_writable(unfinished, host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  if (auto written = write_part(**file, message.SerializeAsString(), header.part, network); !written.ok()) {
    static_cast<void>(disk.remove_all(unfinished));
    return written;
  }
  if (auto renamed = disk.rename(unfinished, path); !renamed.ok()) return renamed;
  return disk.sync_directory(directory);
}

Result<std::vector<PartFile>> list_parts(host::Disk& disk, const std::string& directory,
                                         const sparse_engine::FleetShape& shape, StepNumber step) {
  std::vector<PartFile> parts;
  const auto there = disk.exists(directory);
  if (!there.ok()) return there.error();
  if (!*there) return parts;
  const auto names = disk.list(directory);
  if (!names.ok()) return names.error();
  const std::string suffix = fmt::format("-{}", step.value);
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) continue;
    const std::string path = directory + "/" + name;
    const auto mapped = disk.map(path);
    if (!mapped.ok()) return mapped.error();
    auto header = read_header(path, (*mapped)->bytes(), shape);
    if (!header.ok()) return header.error();
    parts.push_back({.path = path, .header = *std::move(header)});
  }
  return parts;
}

bool cover(const std::vector<PartFile>& parts, const sparse_engine::FleetShape& shape) {
  std::set<std::size_t> shards;
  for (const PartFile& file : parts) shards.merge(sparse_engine::shards_of(file.header.part));
  if (shards.size() != shape.shards()) return false;
  for (std::size_t layer = 0; layer < shape.layers(); ++layer) {
    std::vector<host::Range> runs;
    for (const PartFile& file : parts) runs.push_back(sparse_engine::columns_of(file.header.part, layer));
    std::ranges::sort(runs, {}, &host::Range::begin);
    std::size_t covered = 0;
    for (const host::Range& run : runs) {
      if (run.begin <= covered) covered = std::max(covered, run.end);
    }
    if (covered < shape.width(layer)) return false;
  }
  return true;
}

Result<sparse::Network> put_together(host::Disk& disk, const std::vector<PartFile>& parts,
                                     const sparse_engine::FleetShape& shape, const sparse::RowOrder& order) {
  CHECK(cover(parts, shape));
  sparse::Network network(shape.network, sparse::Moments::kNone);
  for (const PartFile& part : parts) {
    if (auto loaded = load_part(disk, part, network); !loaded.ok()) return loaded.error();
  }
  network.order = order;
  sparse::order_by_label(network);
  return network;
}

}  // namespace gossamer::commands
