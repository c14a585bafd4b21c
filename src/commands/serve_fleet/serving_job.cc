// SPDX-License-Identifier: Apache-2.0
#include "commands/serve_fleet/serving_job.h"

#include <fmt/format.h>
#include <gossamer/sparse_serving.pb.h>

#include <optional>
#include <utility>

#include "commands/train_fleet/fleet_plan.h"
#include "engines/sparse/model/instance_index.h"
#include "engines/sparse/model/model_part.h"

namespace gossamer::commands {
namespace {

Error unreadable(std::string got) {
  return {.kind = ErrorKind::kBadData,
          .what = "cannot read the configuration of the serving run",
          .got = std::move(got),
          .expected = "that of a lead that serves a model",
          .fix = "look whether lead and node run the same version"};
}

// Bytes of all parts in members' memory: weights, and what their search has of each row.
std::uint64_t bytes_of(const sparse::NetworkShape& shape) {
  constexpr std::uint64_t kOfRow = 32;
  std::uint64_t floats = std::uint64_t{shape.features} * sparse::row_stride(shape.hidden);
  std::size_t inputs = shape.hidden;
  for (const std::size_t units : shape.dense) {
    floats += std::uint64_t{units} * sparse::row_stride(inputs);
    inputs = units;
  }
  floats += std::uint64_t{shape.labels} * sparse::row_stride(inputs);
  return floats * sizeof(float) + std::uint64_t{shape.labels} * (inputs + kOfRow);
}

// The same for training rows: hidden vectors and their search, rows and the index that is built
// of them, and cosines of a block.
std::uint64_t bytes_of(const sparse_engine::InstanceCounts& instances, std::size_t width) {
  constexpr std::uint64_t kOfRow = 40;
  constexpr std::uint64_t kCosines = sparse_engine::kIndexQueries * sizeof(float);
  return instances.rows * (3 * width + kOfRow + kCosines) + 16 * instances.feature_entries +
         8 * instances.label_entries;
}

// Bytes that each member has for all features and labels, however few training rows it has. It needs them
// while it reads its part, which takes more than the index does later (instance_part.h).
std::uint64_t bytes_each(const sparse::NetworkShape& shape) {
  return std::uint64_t{33} * shape.features + std::uint64_t{8} * shape.labels;
}

}  // namespace

ServingLead prepare_serving(const sparse_engine::OpenedModel& model, std::size_t nodes,
                            sparse_engine::PartInstances instances) {
  const bool share = instances == sparse_engine::PartInstances::kShare;
  const unsigned shift = fleet_shard_shift(model.header.labels, nodes);
  sparse_serving::Configuration message;
  message.set_model(model.directory);
  message.set_header_hash(model.header_hash);
  message.set_shard_shift(shift);
  message.set_instances(share);
  const sparse::NetworkShape shape = sparse_engine::network_shape(model.header);
  std::uint64_t bytes = bytes_of(shape);
  if (share)
    bytes += bytes_of(model.header.instances.value(), shape.last_hidden()) + nodes * bytes_each(shape);
  return {.configuration = message.SerializeAsString(),
          .shape = {.network = shape, .shard_shift = shift},
          .instances = share ? model.header.instances : std::nullopt,
          .bytes = bytes};
}

Result<std::shared_ptr<const sparse_engine::ServingJob>> make_serving_job(const run::NodeHost& host,
                                                                          const std::string& configuration) {
  sparse_serving::Configuration message;
  if (!message.ParseFromString(configuration))
    return unreadable(fmt::format("{} bytes that are none", configuration.size()));
  constexpr unsigned kMostShift = 31;
  if (message.shard_shift() > kMostShift)
    return unreadable(fmt::format("shards of 2^{} rows", message.shard_shift()));
  const auto opened = sparse_engine::open_model_header(host.disk, message.model());
  if (!opened.ok()) return opened.error();
  if (opened->header_hash != message.header_hash()) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = opened->directory + "/model.json",
                 .what = "the model is not the one that is served",
                 .got = fmt::format("XXH3-64 {:016x}", opened->header_hash),
                 .expected = fmt::format("{:016x}", message.header_hash()),
                 .fix = "serve it anew: it was trained or copied meanwhile"};
  }
  if (message.instances() && !opened->header.instances)
    return unreadable("a wish for training records, which the model does not keep");
  const auto instances =
      message.instances() ? sparse_engine::PartInstances::kShare : sparse_engine::PartInstances::kNone;
  return std::make_shared<const sparse_engine::ServingJob>(sparse_engine::ServingJob{
      .shape = {.network = sparse_engine::network_shape(opened->header),
                .shard_shift = message.shard_shift()},
      .activation = opened->header.activation,
      .kernels = host.kernels,
      .compute = host.compute,
      .load = [&host, directory = opened->directory, instances](const sparse::NetworkPart& part) {
        return sparse_engine::load_model_part(host.disk, directory, part, instances, host.compute);
      }});
}

}  // namespace gossamer::commands
