// SPDX-License-Identifier: Apache-2.0
#include "learn/data/text_windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/rng.h"

namespace gossamer::data {
namespace {

constexpr std::uint32_t kLineEnd = TokenText::kLineEnd;
constexpr double kAllBits = 4294967296.0;  // 2^32
// The most runs of a step. A text that is thinned out to next to nothing does not fill a batch, however long
// a step looks for samples.
constexpr double kMostRuns = 1 << 20;

std::uint64_t runs_of(const TokenText& text) {
  return (text.token.size() + TextWindows::kRun - 1) / TextWindows::kRun;
}

}  // namespace

// Samples back to back, like a Batch, and the words around the run that is being cut.
struct TextWindows::Part {
  std::vector<std::uint32_t> feature_end;
  std::vector<std::uint32_t> feature;
  std::vector<float> value;
  std::vector<std::uint32_t> label_end;
  std::vector<std::uint32_t> label;

  std::uint32_t epoch = 0;
  std::vector<std::uint32_t> near;    // words that stayed, and line ends
  std::vector<std::size_t> position;  // of each of them
  std::size_t centres_begin = 0;      // of `near`: the run's own
  std::size_t centres_end = 0;
  std::vector<std::uint32_t> context;
  std::uint64_t bits_of = std::numeric_limits<std::uint64_t>::max();  // positions/4 that `bits` are for
  std::array<std::uint32_t, 4> bits{};

  void clear() {
    feature_end.clear();
    feature.clear();
    value.clear();
    label_end.clear();
    label.clear();
    bits_of = std::numeric_limits<std::uint64_t>::max();
  }
};

TextWindows::TextWindows(const TokenText& text, const WindowOptions& options, host::Compute& compute)
    : text_(text),
      options_(options),
      compute_(compute),
      runs_(runs_of(text)),
      fallback_(first_window(text)),
      plan_(options.seed, runs_of(text)),
      parts_(static_cast<std::size_t>(compute.workers())) {
  CHECK(options.window >= 1 && options.batch >= 1, options.window, options.batch);
  CHECK(fallback_ < text.token.size(), fallback_);
  const auto words =
      static_cast<double>(std::accumulate(text.count.begin(), text.count.end(), std::uint64_t{0}));
  for (const std::uint64_t count : text.count) {
    const double share = static_cast<double>(count) / words;
    keep_.push_back(options.sample > 0 ? std::min(1.0, std::sqrt(options.sample / share)) : 1.0);
    keep_below_.push_back(static_cast<std::uint64_t>(keep_.back() * kAllBits));
  }
  plan_steps();
}

TextWindows::~TextWindows() = default;

// How likely a word with this share of the text is around a centre, 1 - (1 - share)^(2 b): the mean over the
// reaches b.
double TextWindows::chance_around(double share) const {
  double sum = 0;
  const std::uint32_t least = options_.shrink ? 1 : options_.window;
  for (std::uint32_t reach = least; reach <= options_.window; ++reach)
    sum -= std::expm1(2.0 * reach * std::log1p(-share));
  return sum / (options_.window - least + 1);
}

void TextWindows::plan_steps() {
  double stay = 0;
  for (std::size_t word = 0; word < keep_.size(); ++word) {
    stay += static_cast<double>(text_.count[word]) * keep_[word];
  }
  // Two standard deviations of a binomial count are spared, so that few steps fall short of their samples.
  const auto batch = static_cast<double>(options_.batch);
  const double wanted = batch + 2 * std::sqrt(batch);
  const double per_run = stay / static_cast<double>(runs_);
  runs_per_step_ = static_cast<std::uint64_t>(std::clamp(std::ceil(wanted / per_run), 1.0, kMostRuns));
  steps_per_epoch_ = std::max<std::uint64_t>(1, runs_ / runs_per_step_);
  samples_per_epoch_ = steps_per_epoch_ * options_.batch;
  for (std::size_t word = 0; word < keep_.size(); ++word) {
    const double share = static_cast<double>(text_.count[word]) * keep_[word] / stay;
    const double labelled = options_.mode == WindowMode::kCbow ? share : chance_around(share);
    const double count = std::round(labelled * static_cast<double>(samples_per_epoch_));
    label_count_.push_back(static_cast<std::uint32_t>(std::max(1.0, count)));
  }
}

bool TextWindows::stays(std::size_t position, Part& part) const {
  const std::uint64_t below = keep_below_[text_.token[position]];
  if (below >> 32 != 0) return true;
  if (part.bits_of != position / 4) {
    part.bits_of = position / 4;
    Rng rng(options_.seed, Purpose::kSubsampling, part.bits_of, part.epoch);
    for (std::uint32_t& bits : part.bits) bits = rng.next_u32();
  }
  return part.bits[position % 4] < below;
}

// Collects the words that stayed at positions [begin, end), and as many on each side as a window may reach.
void TextWindows::thin(std::size_t begin, std::size_t end, Part& part) const {
  part.near.clear();
  part.position.clear();
  const auto take = [&](std::size_t position) {
    part.near.push_back(text_.token[position]);
    part.position.push_back(position);
  };
  for (std::size_t at = begin; at > 0 && part.near.size() < options_.window; --at) {
    if (text_.token[at - 1] == kLineEnd) break;
    if (stays(at - 1, part)) take(at - 1);
  }
  std::ranges::reverse(part.near);
  std::ranges::reverse(part.position);
  part.centres_begin = part.near.size();
  for (std::size_t at = begin; at < end; ++at) {
    if (text_.token[at] == kLineEnd || stays(at, part)) take(at);
  }
  part.centres_end = part.near.size();
  const std::size_t most = part.near.size() + options_.window;
  for (std::size_t at = end; at < text_.token.size() && part.near.size() < most; ++at) {
    if (text_.token[at] == kLineEnd) break;
    if (stays(at, part)) take(at);
  }
}

// Adds a sample of `centre` and the words in part.context, unless there are none.
void TextWindows::add_sample(std::uint32_t centre, Part& part) const {
  if (part.context.empty()) return;
  std::ranges::sort(part.context);
  const float each = 1 / static_cast<float>(part.context.size());
  const bool cbow = options_.mode == WindowMode::kCbow;
  std::vector<std::uint32_t>& around = cbow ? part.feature : part.label;
  const std::size_t first = around.size();
  for (const std::uint32_t word : part.context) {
    const bool again = around.size() > first && around.back() == word;
    if (!again) around.push_back(word);
    if (!cbow) continue;
    if (again) {
      part.value.back() += each;
    } else {
      part.value.push_back(each);
    }
  }
  (cbow ? part.label : part.feature).push_back(centre);
  if (!cbow) part.value.push_back(1);
  part.feature_end.push_back(static_cast<std::uint32_t>(part.feature.size()));
  part.label_end.push_back(static_cast<std::uint32_t>(part.label.size()));
}

void TextWindows::cut(std::uint64_t run, Part& part) const {
  const std::size_t begin = run * kRun;
  thin(begin, std::min(begin + kRun, text_.token.size()), part);
  for (std::size_t i = part.centres_begin; i < part.centres_end; ++i) {
    if (part.near[i] == kLineEnd) continue;
    std::size_t side = options_.window;
    if (options_.shrink) {
      Rng rng(options_.seed, Purpose::kWindow, part.position[i], part.epoch);
      side = 1 + ((std::uint64_t{rng.next_u32()} * options_.window) >> 32);
    }
    part.context.clear();
    for (std::size_t j = i; j > 0 && i - j < side && part.near[j - 1] != kLineEnd; --j) {
      part.context.push_back(part.near[j - 1]);
    }
    for (std::size_t j = i + 1; j < part.near.size() && j - i <= side && part.near[j] != kLineEnd; ++j) {
      part.context.push_back(part.near[j]);
    }
    add_sample(part.near[i], part);
  }
}

void TextWindows::merge() {
  feature_begin_.assign(1, 0);
  label_begin_.assign(1, 0);
  feature_.clear();
  value_.clear();
  label_.clear();
  for (const Part& part : parts_) {
    const std::size_t room = options_.batch - (feature_begin_.size() - 1);
    const std::size_t samples = std::min(room, part.feature_end.size());
    if (samples == 0) continue;
    const auto features_before = static_cast<std::uint32_t>(feature_.size());
    const auto labels_before = static_cast<std::uint32_t>(label_.size());
    for (std::size_t i = 0; i < samples; ++i) {
      feature_begin_.push_back(features_before + part.feature_end[i]);
      label_begin_.push_back(labels_before + part.label_end[i]);
    }
    const auto features = static_cast<std::ptrdiff_t>(part.feature_end[samples - 1]);
    const auto labels = static_cast<std::ptrdiff_t>(part.label_end[samples - 1]);
    feature_.insert(feature_.end(), part.feature.begin(), part.feature.begin() + features);
    value_.insert(value_.end(), part.value.begin(), part.value.begin() + features);
    label_.insert(label_.end(), part.label.begin(), part.label.begin() + labels);
  }
}

Batch TextWindows::read_step(StepNumber step) {
  compute_.run([&](int worker) {
    Part& part = parts_[static_cast<std::size_t>(worker)];
    part.clear();
    const host::Range mine = host::worker_range(runs_per_step_, worker, compute_.workers());
    for (std::size_t run = mine.begin; run < mine.end; ++run) {
      const SampleId id{step.value * runs_per_step_ + run};
      const auto epoch = static_cast<std::uint32_t>(plan_.epoch(id));
      if (epoch != part.epoch) part.bits_of = std::numeric_limits<std::uint64_t>::max();
      part.epoch = epoch;
      cut(plan_.record(id).value, part);
    }
  });
  // A small or heavily thinned text may leave a step nothing.
  const bool none = std::ranges::all_of(parts_, [](const Part& part) { return part.feature_end.empty(); });
  if (none) {
    Part& part = parts_.front();
    part.context.clear();
    full_window(text_, fallback_, options_.window, part.context);
    add_sample(text_.token[fallback_], part);
  }
  merge();
  return {.features = {.begin = feature_begin_, .index = feature_, .value = value_},
          .labels = {.begin = label_begin_, .label = label_}};
}

std::size_t first_window(const TokenText& text) {
  const std::vector<std::uint32_t>& token = text.token;
  for (std::size_t at = 0; at + 1 < token.size(); ++at) {
    if (token[at] != kLineEnd && token[at + 1] != kLineEnd) return at;
  }
  return token.size();
}

void full_window(const TokenText& text, std::size_t centre, std::uint32_t window,
                 std::vector<std::uint32_t>& context) {
  const std::vector<std::uint32_t>& token = text.token;
  CHECK(centre < token.size() && token[centre] != kLineEnd, centre);
  for (std::size_t at = centre; at > 0 && centre - at < window && token[at - 1] != kLineEnd; --at) {
    context.push_back(token[at - 1]);
  }
  for (std::size_t at = centre + 1; at < token.size() && at - centre <= window && token[at] != kLineEnd;
       ++at) {
    context.push_back(token[at]);
  }
}

}  // namespace gossamer::data
