// SPDX-License-Identifier: Apache-2.0
//
// Fits a Calibration (model/fusion_options.h) on records that training held out. It is a logistic regression
// of "the record has this label" on ln(q) and -ln(1 - q). q is the label's share of the softmax. The best
// kCalibrated labels of each record are the examples, as people look at these.
//
// Thread rule: pure functions, but for add_examples(): the thread that may call the predictor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model/fusion_options.h"
#include "engines/sparse/predict/held_out.h"
#include "engines/sparse/predict/predictor.h"

namespace gossamer::sparse_engine {

inline constexpr std::size_t kCalibrated = 5;

struct CalibrationExamples {
  std::vector<float> share;           // 0..1
  std::vector<std::uint8_t> correct;  // 1: the record has the label
};

// Nothing without examples of both kinds.
[[nodiscard]] std::optional<Calibration> fit_calibration(const CalibrationExamples& examples);

// The mean over the examples of |how many are right - their mean probability|, in `bins` bins of equal width
// (expected calibration error; 0..1).
[[nodiscard]] double calibration_error(const CalibrationExamples& examples, const Calibration& calibration,
                                       std::size_t bins = 10);

// Adds the best kCalibrated labels of each of the records. Errors are the predictor's.
[[nodiscard]] Result<void> add_examples(Predictor& predictor, const HeldOutRecords& records,
                                        CalibrationExamples& examples);

}  // namespace gossamer::sparse_engine
