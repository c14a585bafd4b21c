// SPDX-License-Identifier: Apache-2.0
//
// From a trained network to a Model. Added are names of labels and features, label counts, and the options of
// the fusion. Training rows are added as the fused prediction uses them: weighted, with their labels and
// hidden vectors.
//
// Thread rule: called by the owner of the Compute.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engines/sparse/config/config.h"
#include "engines/sparse/model/model.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/data/dataset.h"
#include "learn/sparse/network/network.h"
#include "learn/text/featurizer.h"
#include "learn/text/weighting.h"

namespace gossamer::sparse_engine {

struct TrainedParts {
  sparse::Network network;
  const data::Schema& schema;  // the training set's
  // The training set. Null if it has no records: then predict.instances is false, and label_count and
  // training_rows stand for the records.
  const data::Dataset* records = nullptr;
  std::vector<std::uint32_t> label_count = {};
  std::uint64_t training_rows = 0;
  const text::FeatureWeighting& weighting;
  std::optional<text::FeaturizerState> featurizer;  // for a text dataset
  std::string task = "xmc";
  std::optional<data::LineShape> line;  // for a task whose queries are lines of names
  const TrainConfig& config;
};

// Assembles the model. Moments are dropped. Instances are kept unless predict.instances is false; they
// require at most 2^32 - 1 feature entries and label entries.
[[nodiscard]] Model assemble_model(TrainedParts parts, const kernels::Kernels& kernels,
                                   host::Compute& compute);

// Replaces the instances and the counts of labels by those of `dataset`, which has the same features and
// labels. It is for records that were held out while the network was trained.
void replace_records(Model& model, const data::Dataset& dataset, const kernels::Kernels& kernels,
                     host::Compute& compute);

struct InstanceSource {
  const data::Dataset& dataset;
  const text::FeatureWeighting& weighting;
  const text::NeighbourWeighting& neighbours;
  const sparse::Network& network;
  kernels::Activation activation;
};
[[nodiscard]] Instances build_instances(const InstanceSource& source, const kernels::Kernels& kernels,
                                        host::Compute& compute);

}  // namespace gossamer::sparse_engine
