// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/fused_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/payload_values.h"
#include "engines/sparse/model/instance_index.h"
#include "engines/sparse/model/instance_part.h"
#include "engines/sparse/serve/query_rows.h"

namespace gossamer::sparse_engine {
namespace {

void sort_distinct(std::vector<std::uint32_t>& ids) {
  std::ranges::sort(ids);
  const auto twice = std::ranges::unique(ids);
  ids.erase(twice.begin(), twice.end());
}

std::vector<Scored> scored(std::span<const FoundRow> list, float FoundRow::* score) {
  std::vector<Scored> out;
  out.reserve(list.size());
  for (const FoundRow& one : list) out.push_back({one.row, one.*score});
  return out;
}

}  // namespace

// The answers for one query.
class FusedBlock::Answers final : public FusionAnswers {
 public:
  Answers(const FusedBlock& block, std::size_t q) : block_(block), q_(q) {}

  [[nodiscard]] std::span<const std::uint32_t> labels_of(std::uint32_t row) const override {
    const auto found = std::ranges::lower_bound(block_.row_, row);
    CHECK(found != block_.row_.end() && *found == row, row);
    return block_.label_of_[static_cast<std::size_t>(found - block_.row_.begin())];
  }
  [[nodiscard]] float net_score(std::uint32_t label) const override { return terms(label).score; }
  [[nodiscard]] float centroid_cosine(std::uint32_t label) const override {
    const Terms& of_label = terms(label);
    return sparse_engine::centroid_cosine(static_cast<std::int64_t>(of_label.sum), of_label.inverse_length);
  }

 private:
  [[nodiscard]] const Terms& terms(std::uint32_t label) const {
    const std::size_t begin = block_.candidate_begin_[q_];
    const auto mine = std::span(block_.candidate_).subspan(begin, block_.candidate_begin_[q_ + 1] - begin);
    const auto found = std::ranges::lower_bound(mine, label);
    CHECK(found != mine.end() && *found == label, label);
    return block_.terms_[begin + static_cast<std::size_t>(found - mine.begin())];
  }

  const FusedBlock& block_;
  const std::size_t q_;
};

FusedBlock::FusedBlock(Shape shape, const data::SparseRows& compared, std::size_t neighbours)
    : shape_(shape),
      neighbours_(neighbours),
      compared_(write_query_rows(compared)),
      by_input_(compared.rows()),
      by_hidden_(compared.rows()) {
  CHECK(neighbours >= 1);
}

std::size_t FusedBlock::list_size(const sparse::HeldRows& held) const {
  return std::min(neighbours_, instance_rows(shape_.rows, held));
}

std::uint64_t FusedBlock::found_bytes(const sparse::HeldRows& held) const {
  return 2 * row_list_bytes(by_input_.size(), list_size(held));
}

Result<void> FusedBlock::add_found(SliceReader& bytes, const sparse::HeldRows& held) {
  const std::size_t k = list_size(held);
  const RowShare share{.rows = shape_.rows, .held = held};
  const std::uint64_t size = row_list_bytes(by_input_.size(), k);
  auto added = add_rows(bytes.take(size), k, RankedBy::kInput, share, by_input_);
  if (added.ok()) added = add_rows(bytes.take(size), k, RankedBy::kHidden, share, by_hidden_);
  return added;
}

void FusedBlock::rank_found() {
  row_.clear();
  for (std::size_t q = 0; q < by_input_.size(); ++q) {
    rank_rows(neighbours_, RankedBy::kInput, by_input_[q]);
    rank_rows(neighbours_, RankedBy::kHidden, by_hidden_[q]);
    for (const auto* const list : {&by_input_[q], &by_hidden_[q]}) {
      for (const FoundRow& one : *list) row_.push_back(one.row);
    }
  }
  sort_distinct(row_);
  label_of_.assign(row_.size(), {});
  labelled_.assign(row_.size(), 0);
}

bool FusedBlock::has_labels() const {
  return std::ranges::find(labelled_, std::uint8_t{0}) == labelled_.end();
}

// The places in row_ of rows that such a member holds and whose labels are still unknown.
std::vector<std::size_t> FusedBlock::places_of(const sparse::HeldRows& held) const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < row_.size(); ++i) {
    if (labelled_[i] == 0 && holds_instance(shape_.rows, held, row_[i])) places.push_back(i);
  }
  return places;
}

Slice FusedBlock::rows_of(const sparse::HeldRows& held) const {
  std::vector<std::uint32_t> rows;
  for (const std::size_t place : places_of(held)) rows.push_back(row_[place]);
  return Slice::copy_of(std::as_bytes(std::span(rows)));
}

Result<void> FusedBlock::add_labels(const Slices& bytes, const sparse::HeldRows& held) {
  const std::vector<std::size_t> places = places_of(held);
  SliceReader reader(bytes);
  std::size_t count = 0;
  if (reader.left() >= sizeof(std::uint32_t)) count = take_values<std::uint32_t>(reader, 1).front();
  std::optional<OwnedLabelSets> sets;
  if (count <= places.size() && (count > 0 || places.empty()))
    sets = read_label_sets(reader, count, shape_.labels);
  if (!sets) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = "serving",
                 .what = "a member gave labels of training records that none can have",
                 .got = fmt::format("{} bytes for {} records", total_bytes(bytes), places.size()),
                 .expected = "rising labels of the network, for one record at least",
                 .fix = "look whether all members run the same version"};
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto own = sets->view().row(i);
    label_of_[places[i]].assign(own.begin(), own.end());
    labelled_[places[i]] = 1;
  }
  return {};
}

bool FusedBlock::gather(const std::vector<std::vector<Scored>>& net, std::size_t most) {
  CHECK(net.size() == by_input_.size(), net.size(), by_input_.size());
  candidate_begin_.assign(1, 0);
  candidate_.clear();
  std::vector<std::uint32_t> labels;
  for (std::size_t q = 0; q < net.size(); ++q) {
    labels.clear();
    for (const Scored& one : net[q]) labels.push_back(one.id);
    const Answers answers(*this, q);
    for (const auto* const list : {&by_input_[q], &by_hidden_[q]}) {
      for (const FoundRow& one : *list) {
        const auto own = answers.labels_of(one.row);
        labels.insert(labels.end(), own.begin(), own.end());
      }
    }
    sort_distinct(labels);
    if (candidate_.size() + labels.size() > most) return false;
    candidate_.insert(candidate_.end(), labels.begin(), labels.end());
    candidate_begin_.push_back(static_cast<std::uint32_t>(candidate_.size()));
  }
  terms_.assign(candidate_.size(), {});
  return true;
}

Slice FusedBlock::candidates() const {
  return write_label_sets({.begin = candidate_begin_, .label = candidate_});
}

std::uint64_t FusedBlock::terms_bytes(const sparse::HeldRows& held) const {
  const auto own =
      std::ranges::count_if(candidate_, [&](std::uint32_t label) { return held.contains(label); });
  return candidate_.size() * sizeof(std::int64_t) + static_cast<std::uint64_t>(own) * 2 * sizeof(float);
}

// A number that is not finite is accepted: the query itself may overflow.
void FusedBlock::add_terms(const Slices& bytes, const sparse::HeldRows& held) {
  CHECK(total_bytes(bytes) == terms_bytes(held), total_bytes(bytes), terms_bytes(held));
  SliceReader reader(bytes);
  const auto sums = take_values<std::uint64_t>(reader, candidate_.size());
  const auto own = take_values<float>(reader, reader.left() / sizeof(float));
  std::size_t next = 0;
  for (std::size_t i = 0; i < candidate_.size(); ++i) {
    terms_[i].sum += sums[i];
    if (!held.contains(candidate_[i])) continue;
    terms_[i].score = own[next++];
    terms_[i].inverse_length = own[next++];
  }
}

std::size_t FusedBlock::rank(Fusion& fusion, const FusionOptions& options, std::size_t q,
                             std::span<const Scored> net, std::span<Scored> out) const {
  const std::vector<Scored> input = scored(by_input_[q], &FoundRow::input);
  const std::vector<Scored> hidden = scored(by_hidden_[q], &FoundRow::hidden);
  std::vector<Scored> mixed;
  if (mixes(options, PredictParts())) mix_neighbours(by_input_[q], by_hidden_[q], neighbours_, mixed);
  const Answers answers(*this, q);
  return fusion.rank({.net = net, .input = input, .hidden = hidden, .mixed = mixed, .answers = &answers},
                     out.size(), out);
}

}  // namespace gossamer::sparse_engine
