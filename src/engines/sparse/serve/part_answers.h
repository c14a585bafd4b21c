// SPDX-License-Identifier: Apache-2.0
//
// PartAnswers: what a member that holds a part of a model answers to a lead's questions
// (docs/protocols/sparse-serving.md). It keeps nothing from one question to the next.
//
// Thread rule: the one thread of the Compute.
#pragma once

#include <gossamer/sparse_serving.pb.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/aligned_array.h"
#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/fleet/step/part_scorer.h"
#include "engines/sparse/model/instance_part.h"
#include "engines/sparse/serve/instance_scorer.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

// The most bytes of labels in one answer, unless the labels of one record are more.
inline constexpr std::uint64_t kMostLabelBytes = std::uint64_t{16} << 20;

class PartAnswers {
 public:
  struct Options {
    FleetShape shape;
    kernels::Activation activation;
    const kernels::Kernels& kernels;
    host::Compute& compute;
    // An answer has at most so many bytes of labels of training rows, or it has the labels of one row.
    std::uint64_t most_label_bytes = kMostLabelBytes;
  };
  // Borrows the network, kernels and Compute. The network is a part of one of that shape, in any order of
  // rows; it does not change. Without `instances` only the net answers.
  PartAnswers(const Options& options, const sparse::Network& network,
              std::optional<InstancePart> instances = std::nullopt);
  PartAnswers(const PartAnswers&) = delete;
  PartAnswers& operator=(const PartAnswers&) = delete;

  // The payload of the answer. kBadData for a question that no lead asks of such a part.
  [[nodiscard]] Result<std::vector<std::byte>> answer(const sparse_serving::Question& asked,
                                                      const Slices& payload);
  [[nodiscard]] const sparse::NetworkPart& part() const { return network_.part; }

 private:
  [[nodiscard]] Result<std::vector<std::byte>> hidden(const sparse_serving::Question& asked,
                                                      const Slices& payload);
  [[nodiscard]] std::vector<std::byte> columns(std::size_t layer, std::size_t queries,
                                               const AlignedArray<float>& out) const;
  [[nodiscard]] Result<std::vector<std::byte>> lists(const sparse_serving::Question& asked,
                                                     SliceReader reader);
  [[nodiscard]] std::vector<std::byte> label_lists(const QueryMatrix& hidden, std::size_t labels);
  void append_row_lists(std::size_t queries, std::size_t neighbours, std::vector<std::byte>& bytes);
  [[nodiscard]] Result<std::vector<std::byte>> labels(const Slices& payload) const;
  [[nodiscard]] Result<std::vector<std::byte>> terms(std::size_t queries, SliceReader reader);
  // Reads a whole hidden layer from the front of the unread bytes.
  [[nodiscard]] bool take_layer(SliceReader& reader, AlignedArray<float>& layer) const;

  const FleetShape shape_;
  const sparse::Network& network_;
  const kernels::Kernels& kernels_;
  const std::uint64_t most_label_bytes_;
  PartScorer scorer_;
  std::unique_ptr<InstanceScorer> instances_;  // null: only the net answers
};

}  // namespace gossamer::sparse_engine
