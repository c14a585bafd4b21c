// SPDX-License-Identifier: Apache-2.0
//
// Local scaling of training rows. A row that lies close to many others is near every query, and its labels
// would win votes everywhere ("hubs"). So each row j is scaled, once for its features and once for its hidden
// vector:
//
//   factor = (mean r / r_j)^power
//
// r_j: its similarity to its kLocalNearest-th nearest row in a sample of the others. The votes of prediction
// then see similarities s / r_j^power, at no further cost. (Zelnik-Manor and Perona, "Self-tuning spectral
// clustering", NIPS 2004, scale distances by both ends; the query's own is the same for all rows. Schnitzer
// et al., "Local and global scaling reduce hubs in space", JMLR 2012.) The radius is one similarity and not a
// mean, as a row that the data holds twice would look crowded by a mean.
//
// Thread rule: called by the owner of the Compute. Results do not depend on the number of workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/sparse/model/model.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"

namespace gossamer::sparse_engine {

inline constexpr std::size_t kLocalSample = 4000;
inline constexpr std::size_t kLocalNearest = 5;

// The similarity of each row to its kLocalNearest-th neighbour in the sample, at least 0.
struct LocalRadii {
  std::vector<float> input;   // row . unit row of the sample
  std::vector<float> hidden;  // cosine
};

// Computes the radii. Rows of the sample are spread evenly over all rows; a row is not its own neighbour.
// Requires hidden vectors of length 1 and feature indices below `features`.
[[nodiscard]] LocalRadii local_radii(const Instances& rows, std::size_t features,
                                     const kernels::Kernels& kernels, host::Compute& compute);

// The factor of each row. Radii below a fifth of the mean count as that fifth. All are 1 if the mean is 0.
[[nodiscard]] std::vector<float> local_scales(const std::vector<float>& radii, float power);

// Scales features and hidden vectors. Requires what local_radii() requires; power >= 0.
void scale_locally(Instances& rows, std::size_t features, float power, const kernels::Kernels& kernels,
                   host::Compute& compute);

}  // namespace gossamer::sparse_engine
