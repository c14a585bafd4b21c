// SPDX-License-Identifier: Apache-2.0
//
// Local scaling of training rows: a row that lies close to many others is near every query, and its labels
// would win votes everywhere ("hubs"). Each row j is multiplied by (mean r / r_j)^power, r_j its similarity
// to the row that comes kLocalNearest-th in a sample of the others; once for its features and once for its
// hidden vector. So the votes of prediction see similarities s / r_j^power and cost nothing more
// (Zelnik-Manor and Perona, "Self-tuning spectral clustering", NIPS 2004, scale distances by both ends; the
// query's own is the same for all rows. Schnitzer et al., "Local and global scaling reduce hubs in space",
// JMLR 2012). A similarity that is kept, not a mean: a row that the data holds twice would look crowded.
//
// Thread rule: called by the owner of the Compute. Results do not depend on the number of workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/sparse/model.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"

namespace gossamer::engine {

inline constexpr std::size_t kLocalSample = 4000;
inline constexpr std::size_t kLocalNearest = 5;

// The similarity of each row to its kLocalNearest-th neighbour in the sample, at least 0.
struct LocalRadii {
  std::vector<float> input;   // row . unit row of the sample
  std::vector<float> hidden;  // cosine
};

// Rows of the sample are spread evenly over all; a row is not its own neighbour. Requires hidden vectors of
// length 1 and feature indices below `features`.
[[nodiscard]] LocalRadii local_radii(const Instances& rows, std::size_t features,
                                     const kernels::Kernels& kernels, host::Compute& compute);

// What a row of radius r_j is multiplied by. Radii below a fifth of the mean count as that. All 1 where the
// mean is 0.
[[nodiscard]] std::vector<float> local_scales(const std::vector<float>& radii, float power);

// Scales features and hidden vectors. Requires what local_radii() does; power >= 0.
void scale_locally(Instances& rows, std::size_t features, float power, const kernels::Kernels& kernels,
                   host::Compute& compute);

}  // namespace gossamer::engine
