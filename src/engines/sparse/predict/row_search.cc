// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/row_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/products.h"

namespace gossamer::sparse_engine {
namespace {

using kernels::kPanelRows;

// Up to so many queries are multiplied one by one, as rows come from memory no faster.
constexpr std::size_t kFew = 4;
// A list is pruned when it has twice as many rows as it needs, and this many more.
constexpr std::size_t kSlack = 64;
// One row in kSampleStride is in the sample. No worker has a smaller sample than kLeastSample panels.
constexpr std::size_t kSampleStride = 16;
constexpr std::size_t kLeastSample = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A value that at least k of the values reach, close to the largest such value; minus infinity for fewer than
// k values. Counting has no branches, and takes a tenth of the time of std::nth_element.
float reached_by(std::span<const float> values, std::size_t k) {
  if (values.size() < k) return -kInfinity;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  float low = *least;
  float high = *most;
  for (int halving = 0; halving < 12; ++halving) {
    const float middle = low + (high - low) / 2;
    std::uint32_t count = 0;
    for (const float v : values) count += static_cast<std::uint32_t>(v >= middle);
    (count >= k ? low : high) = middle;
  }
  return low;
}

std::size_t sample_panels(std::size_t rows, int workers) {
  const std::size_t panels = rows / (kSampleStride * kPanelRows);
  return panels >= kLeastSample * static_cast<std::size_t>(workers) ? panels : 0;
}

// A rank in the sample whose value at least k rows of the whole set reach, with near certainty. It is the
// mean number of the k rows in the sample, plus four deviations, plus four for small k.
std::size_t sample_rank(std::size_t k) {
  const double mean = static_cast<double>(k) / static_cast<double>(kSampleStride);
  return std::min(k, static_cast<std::size_t>(mean + 4 * std::sqrt(mean)) + 4);
}

}  // namespace

RowSearch::RowSearch(const RowMatrix& matrix, const kernels::Kernels& kernels, host::Compute& compute)
    : matrix_(matrix),
      kernels_(kernels),
      compute_(compute),
      share_(rounding_share(matrix.width)),
      products_{kernels::ByteProducts(kernels.isa, {.hidden = matrix.width, .batch = kBatches[0]}),
                kernels::ByteProducts(kernels.isa, {.hidden = matrix.width, .batch = kBatches[1]}),
                kernels::ByteProducts(kernels.isa, {.hidden = matrix.width, .batch = kBatches[2]})},
      packed_{products_[0].queries(), products_[1].queries(), products_[2].queries()},
      bytes_((matrix.rows + kPanelRows - 1) / kPanelRows * kPanelRows * matrix.width),
      rows_(matrix.rows),
      panels_((matrix.rows + kPanelRows - 1) / kPanelRows),
      sample_panels_(sample_panels(matrix.rows, compute.workers())),
      found_(kQueryBlock) {
  CHECK((matrix.weights != nullptr) != (matrix.compact != nullptr) || matrix.rows == 0, matrix.rows);
  CHECK(matrix.weights == nullptr || matrix.stride >= matrix.width, matrix.width, matrix.stride);
  CHECK(matrix.at.empty() || matrix.at.size() == matrix.rows, matrix.at.size(), matrix.rows);
  block_.bytes = AlignedArray<std::uint8_t>(kQueryBlock * matrix.width);
  block_.scales = AlignedArray<float>(kQueryBlock);
  block_.norms = AlignedArray<float>(kQueryBlock);
  block_.errors = AlignedArray<float>(kQueryBlock);
  block_.finite.resize(kQueryBlock);
  for (int w = 0; w < compute.workers(); ++w) {
    workers_.push_back({.scratch = AlignedArray<std::int16_t>(products_[0].scratch_size()),
                        .products = AlignedArray<std::int32_t>(kPanelRows * kQueryBlock),
                        .thresholds = AlignedArray<float>(kQueryBlock),
                        .hits = std::vector<kernels::ScoreHit>(kQueryBlock),
                        .lists = std::vector<List>(kQueryBlock),
                        .merged = {},
                        .lowers = {}});
  }
  order_rows();
  compute.run([&](int w) {
    const host::Range range = host::worker_range(panels_.size(), w, compute_.workers());
    for (std::size_t panel = range.begin; panel < range.end; ++panel) {
      round_panel(panel, workers_[static_cast<std::size_t>(w)]);
    }
  });
}

const float* RowSearch::values(std::uint32_t id, Worker& worker) const {
  if (matrix_.compact == nullptr) return matrix_.weights + at(id) * matrix_.stride;
  worker.lowers.resize(matrix_.width);
  kernels_.from_bf16(matrix_.compact + at(id) * matrix_.width, worker.lowers.data(), matrix_.width);
  return worker.lowers.data();
}

// Orders rows by length. Rows without a length come first, in the sample and behind it, so they are always
// screened.
void RowSearch::order_rows() {
  std::vector<float> squares(matrix_.rows);
  compute_.run([&](int w) {
    const host::Range range = host::worker_range(matrix_.rows, w, compute_.workers());
    for (std::size_t r = range.begin; r < range.end; ++r) {
      const auto id = static_cast<std::uint32_t>(r);
      const float square =
          kernels_.squared_norm(values(id, workers_[static_cast<std::size_t>(w)]), matrix_.width);
      squares[r] = std::isfinite(square) ? square : kInfinity;
      rows_[r].id = id;
    }
  });
  std::sort(rows_.begin(), rows_.end(), [&](const ScreenedRow& a, const ScreenedRow& b) {
    return squares[a.id] != squares[b.id] ? squares[a.id] > squares[b.id] : a.id < b.id;
  });
  const std::size_t size = sample_panels_ * kPanelRows;
  if (size == 0) return;
  std::vector<ScreenedRow> others;
  others.reserve(rows_.size() - size);
  std::size_t taken = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    // Taken from the middle of each stretch, because its first row would be the longest.
    if (taken < size && r == taken * kSampleStride + kSampleStride / 2) {
      rows_[taken++] = rows_[r];
    } else {
      others.push_back(rows_[r]);
    }
  }
  std::copy(others.begin(), others.end(), rows_.begin() + static_cast<std::ptrdiff_t>(size));
}

// Rounds a panel's rows to bytes. The error of a row has room for the roundings of a score and of the bound.
void RowSearch::round_panel(std::size_t panel, Worker& worker) {
  const std::size_t width = matrix_.width;
  PanelBound& bound = panels_[panel] = {.reach = 0, .bias = -kInfinity};
  const std::size_t end = std::min((panel + 1) * kPanelRows, matrix_.rows);
  for (std::size_t at = panel * kPanelRows; at < end; ++at) {
    ScreenedRow& screened = rows_[at];
    screened.bias = bias(screened.id);
    screened.bytes =
        round_row({values(screened.id, worker), width}, bytes_.span().subspan(at * width, width));
    bound.reach = std::max(bound.reach, screened.bytes.norm + screened.bytes.error);
    const float most = screened.bias + bias_slack(screened.bias);
    if (most > bound.bias) bound.bias = most;  // false for NaN: such a row is never found
  }
}

void RowSearch::round_queries(const QueryMatrix& queries) {
  const std::size_t width = matrix_.width;
  const auto query = [&](std::size_t q) { return std::span(queries.values + q * queries.stride, width); };
  block_.count = queries.count;
  block_.zero = 0;
  for (std::size_t q = 0; q < queries.count; ++q) {
    // NaN is not negative, but spoils the minimum. Such queries are left out below.
    if (*std::min_element(query(q).begin(), query(q).end()) < 0) block_.zero = 128;
  }
  compute_.run([&](int w) {
    const host::Range range = host::worker_range(queries.count, w, compute_.workers());
    for (std::size_t q = range.begin; q < range.end; ++q) {
      const auto values = query(q);
      const bool finite = std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
      block_.finite[q] = static_cast<std::uint8_t>(finite);
      if (!finite) continue;
      const ByteScale scale = round_query(values, block_.zero, block_.bytes.span().subspan(q * width, width));
      block_.scales[q] = scale.scale;
      block_.norms[q] = scale.norm;
      block_.errors[q] = scale.error;
    }
  });
}

void RowSearch::clear(Worker& worker) const {
  for (std::size_t q = 0; q < kQueryBlock; ++q) {
    worker.lists[q].rows.clear();
    worker.lists[q].limit = 2 * k_ + kSlack;
    // No score is above infinity.
    worker.thresholds[q] = q < block_.count && block_.finite[q] != 0 ? -kInfinity : kInfinity;
  }
}

void RowSearch::search(const QueryMatrix& queries, std::size_t k) {
  CHECK(queries.count >= 1 && queries.count <= kQueryBlock && queries.stride >= matrix_.width && k >= 1,
        queries.count, queries.stride, k);
  round_queries(queries);
  k_ = k;
  const auto size = static_cast<std::size_t>(
      std::lower_bound(kBatches.begin(), kBatches.end(), queries.count) - kBatches.begin());
  if (queries.count > kFew) products_[size].pack(block_.bytes.data(), packed_[size]);
  compute_.run([&](int w) { screen_rows(size, w); });
  compute_.run([&](int w) {
    const host::Range range = host::worker_range(queries.count, w, compute_.workers());
    for (std::size_t q = range.begin; q < range.end; ++q) {
      merge(queries, q, k, workers_[static_cast<std::size_t>(w)]);
    }
  });
}

void RowSearch::screen_rows(std::size_t batch_size, int w) {
  Worker& worker = workers_[static_cast<std::size_t>(w)];
  clear(worker);
  worker.screened = 0;
  worker.needed = sample_rank(k_);
  screen_panels(batch_size, {0, sample_panels_}, w);
  for (std::size_t q = 0; q < block_.count; ++q) {
    if (worker.lists[q].rows.size() >= worker.needed) raise_threshold(q, worker);
  }
  worker.needed = k_;
  screen_panels(batch_size, {sample_panels_, panels_.size()}, w);
  if (sample_panels_ == 0 || !begin_again(worker)) return;
  worker.screened = 0;
  screen_panels(batch_size, {0, panels_.size()}, w);
}

// Clears the lists that are shorter than their threshold promised, and closes the others. Returns whether it
// cleared any.
bool RowSearch::begin_again(Worker& worker) const {
  bool any = false;
  for (std::size_t q = 0; q < block_.count; ++q) {
    List& list = worker.lists[q];
    float& threshold = worker.thresholds[q];
    const auto above = std::ranges::count_if(
        list.rows, [&threshold](const Candidate& row) { return row.lower > threshold; });
    const bool kept =
        threshold == -kInfinity || block_.finite[q] == 0 || static_cast<std::size_t>(above) >= k_;
    any |= !kept;
    threshold = kept ? kInfinity : -kInfinity;
    if (kept) continue;
    list.rows.clear();
    list.limit = 2 * k_ + kSlack;
  }
  return any;
}

// Screens the panels of a worker. Every worker gets long rows and short ones, so that its thresholds rise
// early. A list outgrows its limit ever more rarely. So all lists are pruned each time the number of screened
// panels has doubled, which keeps the thresholds close.
void RowSearch::screen_panels(std::size_t batch_size, Panels panels, int w) {
  Worker& worker = workers_[static_cast<std::size_t>(w)];
  const auto workers = static_cast<std::size_t>(compute_.workers());
  // The worker's first panel from panels.begin on. Worker w has the panels w, w + workers, ...
  const std::size_t first = (static_cast<std::size_t>(w) + workers - panels.begin % workers) % workers;
  for (std::size_t panel = panels.begin + first; panel < panels.end; panel += workers) {
    if (!may_reach(panels_[panel], worker)) continue;
    screen_panel(batch_size, panel * kPanelRows, worker);
    if (!std::has_single_bit(++worker.screened)) continue;
    for (std::size_t q = 0; q < block_.count; ++q) {
      if (worker.lists[q].rows.size() > worker.needed) raise_threshold(q, worker);
    }
  }
}

// Whether a score of the panel may be above the threshold of its query. A bound that is NaN excludes nothing.
bool RowSearch::may_reach(const PanelBound& bound, const Worker& worker) const {
  std::uint32_t open = 0;
  for (std::size_t q = 0; q < block_.count; ++q) {
    open |= static_cast<std::uint32_t>(!(block_.norms[q] * bound.reach + bound.bias <= worker.thresholds[q]));
  }
  return open != 0;
}

// Computes the products of the panel that starts at row `first`; for few queries only in their columns.
void RowSearch::multiply(std::size_t batch_size, std::size_t first, Worker& worker) const {
  const std::size_t width = matrix_.width;
  const std::int8_t* const rows = bytes_.data() + first * width;
  if (block_.count > kFew) {
    products_[batch_size].scores(rows, packed_[batch_size], worker.scratch.data(), worker.products.data());
    return;
  }
  for (std::size_t r = 0; r < kPanelRows; ++r) {
    for (std::size_t q = 0; q < block_.count; ++q) {
      worker.products[r * kBatches[0] + q] =
          kernels_.dot_bytes(block_.bytes.data() + q * width, rows + r * width, width);
    }
  }
}

void RowSearch::screen_panel(std::size_t batch_size, std::size_t first, Worker& worker) const {
  multiply(batch_size, first, worker);
  const std::size_t batch = kBatches[batch_size];
  const std::size_t rows = std::min(kPanelRows, matrix_.rows - first);
  for (std::size_t r = 0; r < rows; ++r) {
    const ScreenedRow& screened = rows_[first + r];
    const ByteScale& bytes = screened.bytes;
    const float unsure = bias_slack(screened.bias);
    const std::size_t hits = kernels_.select_above({.products = worker.products.data() + r * batch,
                                                    .offset = block_.zero * bytes.sum,
                                                    .scale = bytes.scale,
                                                    .bias = screened.bias + unsure,
                                                    .norm = bytes.norm,
                                                    .error = bytes.error,
                                                    .scales = block_.scales.data(),
                                                    .norms = block_.norms.data(),
                                                    .errors = block_.errors.data(),
                                                    .thresholds = worker.thresholds.data(),
                                                    .hits = worker.hits.data(),
                                                    .n = batch});
    for (std::size_t i = 0; i < hits; ++i) {
      const auto [q, upper] = worker.hits[i];
      const float slack = bytes.norm * block_.errors[q] + bytes.error * block_.norms[q] + unsure;
      List& list = worker.lists[q];
      const float lower = std::isfinite(slack) ? upper - 2 * slack : -kInfinity;
      list.rows.push_back({screened.id, lower, upper});
      if (list.rows.size() >= list.limit) raise_threshold(q, worker);
    }
  }
}

// Raises the threshold of a query. A later row with the same score may have the smaller id, so the threshold
// stays just below it. The sample may already have set it higher.
void RowSearch::raise_threshold(std::size_t q, Worker& worker) const {
  List& list = worker.lists[q];
  float& threshold = worker.thresholds[q];
  threshold = std::max(threshold, std::nextafter(prune(list.rows, worker.needed, worker.lowers), -kInfinity));
  list.limit = 2 * list.rows.size() + kSlack;
}

// Drops rows that k others are certain to beat. Returns a score that k rows are certain to reach.
float RowSearch::prune(std::vector<Candidate>& rows, std::size_t k, std::vector<float>& lowers) {
  lowers.clear();
  for (const Candidate& row : rows) {
    if (row.lower > -kInfinity) lowers.push_back(row.lower);
  }
  const float reached = reached_by(lowers, k);
  std::erase_if(rows, [reached](const Candidate& row) { return row.upper < reached; });
  return reached;
}

double RowSearch::screened_share() const {
  std::size_t screened = 0;
  for (const Worker& worker : workers_) screened += worker.screened;
  return panels_.empty() ? 0 : static_cast<double>(screened) / static_cast<double>(panels_.size());
}

void RowSearch::merge(const QueryMatrix& queries, std::size_t q, std::size_t k, Worker& worker) {
  std::vector<Candidate>& rows = worker.merged;
  rows.clear();
  for (const Worker& each : workers_) {
    rows.insert(rows.end(), each.lists[q].rows.begin(), each.lists[q].rows.end());
  }
  if (rows.size() > k) prune(rows, k, worker.lowers);
  std::vector<Scored>& found = found_[q];
  found.clear();
  for (const Candidate& row : rows) {
    const Scored scored{row.id, score(queries.values + q * queries.stride, row.id)};
    if (scored.score > -kInfinity) found.push_back(scored);
  }
  if (found.size() > k) keep_best(found, k);
  std::sort(found.begin(), found.end(), ranks_before);
}

float RowSearch::score(const float* query, std::uint32_t row) const {
  const std::size_t width = matrix_.width;
  const float product = matrix_.compact != nullptr
                            ? kernels_.dot_bf16(matrix_.compact + at(row) * width, query, width)
                            : kernels_.dot(matrix_.weights + at(row) * matrix_.stride, query, width);
  return product + bias(row);
}

}  // namespace gossamer::sparse_engine
