// SPDX-License-Identifier: Apache-2.0
#include "node/fleet/serving_job.h"

#include <fmt/format.h>
#include <gossamer/sparse_serving.pb.h>

#include <optional>
#include <utility>

#include "engines/sparse/model_part.h"
#include "node/fleet/fleet_plan.h"

namespace gossamer::node {
namespace {

Error unreadable(std::string got) {
  return {.kind = ErrorKind::kBadData,
          .what = "cannot read the configuration of the serving run",
          .got = std::move(got),
          .expected = "that of a lead that serves a model",
          .fix = "look whether lead and node run the same version"};
}

}  // namespace

ServingLead prepare_serving(const engine::OpenedModel& model, std::size_t nodes,
                            engine::PartInstances instances) {
  const bool share = instances == engine::PartInstances::kShare;
  const unsigned shift = fleet_shard_shift(model.header.labels, nodes);
  sparse_serving::Configuration message;
  message.set_model(model.directory);
  message.set_header_hash(model.header_hash);
  message.set_shard_shift(shift);
  message.set_instances(share);
  return {.configuration = message.SerializeAsString(),
          .shape = {.network = engine::network_shape(model.header), .shard_shift = shift},
          .instances = share ? model.header.instances : std::nullopt};
}

Result<std::shared_ptr<const engine::ServingJob>> make_serving_job(const NodeHost& host,
                                                                   const std::string& configuration) {
  sparse_serving::Configuration message;
  if (!message.ParseFromString(configuration))
    return unreadable(fmt::format("{} bytes that are none", configuration.size()));
  constexpr unsigned kMostShift = 31;
  if (message.shard_shift() > kMostShift)
    return unreadable(fmt::format("shards of 2^{} rows", message.shard_shift()));
  const auto opened = engine::open_model_header(host.disk, message.model());
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
  const auto instances = message.instances() ? engine::PartInstances::kShare : engine::PartInstances::kNone;
  return std::make_shared<const engine::ServingJob>(engine::ServingJob{
      .shape = {.network = engine::network_shape(opened->header), .shard_shift = message.shard_shift()},
      .activation = opened->header.activation,
      .kernels = host.kernels,
      .compute = host.compute,
      .load = [&host, directory = opened->directory, instances](const sparse::NetworkPart& part) {
        return engine::load_model_part(host.disk, directory, part, instances, host.compute);
      }});
}

}  // namespace gossamer::node
