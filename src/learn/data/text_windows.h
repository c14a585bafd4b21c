// SPDX-License-Identifier: Apache-2.0
//
// TextWindows: the training samples of word2vec (Mikolov et al., "Efficient estimation of word
// representations in vector space", 2013). They are cut from a text step by step and never stored.
//
//   CBOW       features: the mean of the words around a centre; label: the centre
//   skip-gram  features: the centre; labels: the words around it, each once (their mean loss is the mean over
//              the pairs that the paper trains one by one)
//
// Frequent words are thinned out before windows are cut, anew in every pass over the text. An occurrence
// stays with chance min(1, sqrt(t / f)), where f is the share of the word in the text and t = `sample`.
// (Equation 5 of "Distributed representations", 2013.) A window takes the nearest b words that stayed on each
// side. b is uniform in 1..window as the paper's program draws it, or always `window`. A window does not
// reach over a line end.
//
// The text is dealt out in runs of kRun neighbouring positions, in an order of its own every pass
// (SamplingPlan). A step takes as many runs as give its samples with a little to spare, and drops what is
// over. So a pass leaves out a few percent, other ones each time. Any step can be made at any time, from the
// seed and its number alone.
//
// Owner: the training loop's thread, which owns the Compute that shares the work. A batch is valid until the
// next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "host/api/compute.h"
#include "learn/data/rows.h"
#include "learn/data/sampling_plan.h"
#include "learn/data/token_text.h"

namespace gossamer::data {

enum class WindowMode { kCbow, kSkipGram };

struct WindowOptions {
  WindowMode mode = WindowMode::kCbow;
  std::uint32_t window = 5;  // words on each side, >= 1
  bool shrink = true;        // b uniform in 1..window; else b = window
  double sample = 1e-3;      // t above; 0: every word stays
  std::size_t batch = 1024;  // samples of a step, >= 1
  std::uint64_t seed = 1;
};

class TextWindows {
 public:
  // The number of positions that are read together: their windows share words, which the cache holds.
  static constexpr std::size_t kRun = 16;

  // Borrows both for its life. Requires a text in which some word has a neighbour (first_window()).
  TextWindows(const TokenText& text, const WindowOptions& options, host::Compute& compute);
  ~TextWindows();

  // The samples of a step: at most options.batch, at least one.
  [[nodiscard]] Batch read_step(StepNumber step);

  [[nodiscard]] std::uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  // How often each word is a label in a pass, at least 1; and how many samples a pass has. Both are expected
  // values, for the corrections of sampled labels.
  [[nodiscard]] const std::vector<std::uint32_t>& label_count() const { return label_count_; }
  [[nodiscard]] std::uint64_t samples_per_epoch() const { return samples_per_epoch_; }
  // The chance that an occurrence of the word stays.
  [[nodiscard]] double keep(std::uint32_t word) const { return keep_[word]; }

 private:
  struct Part;  // the samples that one worker cuts

  void plan_steps();
  [[nodiscard]] double chance_around(double share) const;
  void cut(std::uint64_t run, Part& part) const;
  void thin(std::size_t begin, std::size_t end, Part& part) const;
  [[nodiscard]] bool stays(std::size_t position, Part& part) const;
  void add_sample(std::uint32_t centre, Part& part) const;
  void merge();

  const TokenText& text_;
  WindowOptions options_;
  host::Compute& compute_;
  std::vector<double> keep_;
  std::vector<std::uint64_t> keep_below_;  // a word stays when 32 random bits are below; 2^32: always
  std::uint64_t runs_ = 0;
  std::uint64_t runs_per_step_ = 0;
  std::uint64_t steps_per_epoch_ = 0;
  std::uint64_t samples_per_epoch_ = 0;
  std::vector<std::uint32_t> label_count_;
  std::size_t fallback_ = 0;  // the first position with a window
  SamplingPlan plan_;
  std::vector<Part> parts_;

  // The step's batch.
  std::vector<std::uint32_t> feature_begin_;
  std::vector<std::uint32_t> feature_;
  std::vector<float> value_;
  std::vector<std::uint32_t> label_begin_;
  std::vector<std::uint32_t> label_;
};

// The first position that has a neighbour in its line; the size of the text if there is none.
[[nodiscard]] std::size_t first_window(const TokenText& text);

// All words around position `centre`, at most `window` on each side in its line, nothing thinned out, as an
// evaluation asks for them. Appends to `context`. Requires a word at `centre`.
void full_window(const TokenText& text, std::size_t centre, std::uint32_t window,
                 std::vector<std::uint32_t>& context);

}  // namespace gossamer::data
