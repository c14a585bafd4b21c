// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/model/record_checks.h"
#include "learn/text/words.h"

namespace gossamer::sparse_engine {
namespace {

// Floats and bf16 must be finite.
template <class T>
bool finite(std::span<const T>) {
  return true;
}
template <>
bool finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}
template <>
bool finite(std::span<const kernels::Bf16> values) {
  return all_finite(values);
}

void copy_bytes(void* out, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
}

tensors::TensorSource rows_tensor(std::string name, const sparse::RowTable& table) {
  return {.name = std::move(name),
          .dtype = tensors::DType::kF32,
          .shape = {table.rows(), table.width()},
          .data = reinterpret_cast<const std::byte*>(table.all_weights().data()),
          .row_stride_bytes = table.stride() * sizeof(float)};
}

void add_names(std::vector<tensors::TensorSource>& tensors, const std::string& prefix, const Names& names) {
  tensors.push_back(vector_tensor<char>(prefix + ".bytes", tensors::DType::kU8, names.bytes));
  tensors.push_back(vector_tensor<std::uint64_t>(prefix + ".begin", tensors::DType::kU64, names.begin));
}

}  // namespace

std::string not_finite(const tensors::TensorView& tensor) {
  const std::uint64_t at = tensors::first_not_finite(tensor.dtype, tensor.bytes).value_or(0);
  if (tensor.shape.size() != 2) return fmt::format("a number that is not finite, the one at {}", at);
  const std::uint64_t width = std::max<std::uint64_t>(tensor.shape[1], 1);
  return fmt::format("a number that is not finite, in row {}, column {}", at / width, at % width);
}

std::string wrong_offset_text(std::size_t place, std::uint64_t offset) {
  return fmt::format("offsets that do not fit: {} at {}", offset, place);
}

std::string wrong_index_text(std::size_t record, std::size_t entry, std::uint32_t index) {
  return fmt::format("a row that does not rise or leaves its bounds: {} at {}, in record {}", index, entry,
                     record);
}

// Every exponent bit set means infinity or NaN.
bool all_finite(std::span<const kernels::Bf16> values) {
  return std::ranges::all_of(values, [](kernels::Bf16 v) { return (v.bits & 0x7F80U) != 0x7F80U; });
}

Names featurizer_features_of(const Model& model) {
  Names names;
  names.begin.push_back(0);
  if (model.featurizer) {
    for (const std::string& feature : model.featurizer->features) names.add(feature);
  }
  return names;
}

namespace {

std::vector<tensors::TensorSource> network_tensors(const Model& model) {
  std::vector<tensors::TensorSource> tensors;
  tensors.push_back(rows_tensor("embedding.weight", model.network.embedding));
  for (std::size_t i = 0; i < model.network.dense.size(); ++i) {
    const sparse::DenseLayer& layer = model.network.dense[i];
    tensors.push_back(rows_tensor(fmt::format("dense.{}.weight", i + 1), layer.weights));
    tensors.push_back(vector_tensor<float>(fmt::format("dense.{}.bias", i + 1), tensors::DType::kF32,
                                           layer.bias.span().first(layer.weights.rows())));
  }
  tensors.push_back(rows_tensor("output.weight", model.network.output));
  tensors.push_back(vector_tensor<float>("output.bias", tensors::DType::kF32, model.network.bias.span()));
  return tensors;
}

}  // namespace

std::vector<tensors::TensorSource> tensors_of(const Model& model, const Names& featurizer_features,
                                              std::vector<tensors::TensorSource> network) {
  std::vector<tensors::TensorSource> tensors = network.empty() ? network_tensors(model) : std::move(network);
  tensors.push_back(vector_tensor<std::uint32_t>("label_count", tensors::DType::kU32, model.label_count));
  tensors.push_back(vector_tensor<float>("weighting.idf", tensors::DType::kF32, model.weighting.idf));
  if (model.label_names.size() > 0) add_names(tensors, "label_names", model.label_names);
  if (model.feature_names.size() > 0) add_names(tensors, "feature_names", model.feature_names);
  if (model.featurizer) {
    add_names(tensors, "featurizer.features", featurizer_features);
    tensors.push_back(vector_tensor<std::uint32_t>("featurizer.document_frequency", tensors::DType::kU32,
                                                   model.featurizer->document_frequency));
  }
  if (model.instances) {
    const Instances& instances = *model.instances;
    const auto add = [&tensors](const char* name, const std::vector<std::uint32_t>& values) {
      tensors.push_back(vector_tensor<std::uint32_t>(name, tensors::DType::kU32, values));
    };
    add("instances.feature_begin", instances.feature_begin);
    add("instances.feature", instances.feature);
    tensors.push_back(vector_tensor<float>("instances.value", tensors::DType::kF32, instances.value));
    add("instances.label_begin", instances.label_begin);
    add("instances.label", instances.label);
    tensors.push_back({.name = "instances.hidden",
                       .dtype = tensors::DType::kBf16,
                       .shape = {instances.rows(), model.network.shape.last_hidden()},
                       .data = reinterpret_cast<const std::byte*>(instances.hidden.data())});
  }
  return tensors;
}

ModelHeader header_of(const Model& model) {
  const sparse::NetworkShape& shape = model.network.shape;
  CHECK(model.network.embedding.rows() == shape.features && model.network.output.rows() == shape.labels,
        shape.features, shape.labels);
  CHECK(model.network.bias.size() == shape.labels && model.label_count.size() == shape.labels,
        model.network.bias.size(), model.label_count.size(), shape.labels);
  CHECK(model.label_names.size() == 0 || model.label_names.size() == shape.labels, model.label_names.size());
  CHECK(model.feature_names.size() == 0 ||
            (model.feature_names.size() == shape.features && !model.featurizer.has_value()),
        model.feature_names.size(), shape.features);
  CHECK(model.weighting.idf.size() <= shape.features, model.weighting.idf.size(), shape.features);
  ModelHeader header;
  header.task = model.task;
  header.line = model.line;
  header.features = shape.features;
  header.labels = shape.labels;
  header.hidden = shape.hidden;
  header.dense.assign(shape.dense.begin(), shape.dense.end());
  header.activation = model.activation;
  header.training_rows = model.training_rows;
  header.counts = model.weighting.counts;
  header.l2 = model.weighting.l2;
  header.idf = !model.weighting.idf.empty();
  header.label_names = model.label_names.size() > 0;
  header.feature_names = model.feature_names.size() > 0;
  header.fusion = model.fusion;
  if (model.featurizer) {
    const text::FeaturizerState& state = *model.featurizer;
    CHECK(state.features.size() == state.document_frequency.size() && state.features.size() <= shape.features,
          state.features.size(), state.document_frequency.size(), shape.features);
    header.featurizer = FeaturizerHeader{
        .options = state.options, .documents = state.documents, .features = state.features.size()};
  }
  if (model.instances) {
    const Instances& instances = *model.instances;
    CHECK(instances.hidden.size() == instances.rows() * shape.last_hidden(), instances.hidden.size(),
          instances.rows());
    CHECK(instances.label_begin.size() == instances.rows() + 1, instances.label_begin.size(),
          instances.rows());
    header.instances = InstanceCounts{.rows = instances.rows(),
                                      .feature_entries = instances.feature.size(),
                                      .label_entries = instances.label.size(),
                                      .weighting = model.neighbours};
  }
  return header;
}

ModelBuilder::ModelBuilder(const ModelHeader& header, Reading reading) {
  model_.task = header.task;
  model_.line = header.line;
  model_.activation = header.activation;
  model_.training_rows = header.training_rows;
  model_.weighting.counts = header.counts;
  if (header.instances) model_.neighbours = header.instances->weighting;
  model_.weighting.l2 = header.l2;
  has_idf_ = header.idf;
  model_.fusion = header.fusion;
  model_.network.shape = network_shape(header);
  const bool all = reading == Reading::kAll;
  if (all) expect_network();
  expect_vector("label_count", tensors::DType::kU32, header.labels, model_.label_count);
  expect_vector("weighting.idf", tensors::DType::kF32, header.idf ? kAnySize : 0, model_.weighting.idf);
  if (header.label_names) expect_names("label_names", header.labels, model_.label_names);
  if (header.feature_names) expect_names("feature_names", header.features, model_.feature_names);
  if (header.featurizer) {
    model_.featurizer.emplace();
    model_.featurizer->options = header.featurizer->options;
    model_.featurizer->documents = header.featurizer->documents;
    expect_names("featurizer.features", header.featurizer->features, featurizer_features_);
    expect_vector("featurizer.document_frequency", tensors::DType::kU32, header.featurizer->features,
                  model_.featurizer->document_frequency);
  }
  if (all && header.instances) expect_instances(*header.instances, model_.network.shape.last_hidden());
}

template <class T>
void ModelBuilder::expect_vector(const char* name, tensors::DType dtype, std::uint64_t size,
                                 std::vector<T>& out) {
  CHECK(tensors::size_of(dtype) == sizeof(T), name);
  expected_[name] = {.dtype = dtype, .shape = {size}, .take = [&out](const tensors::TensorView& tensor) {
                       out.resize(tensor.bytes.size() / sizeof(T));
                       copy_bytes(out.data(), tensor.bytes);
                       return finite<T>(out);
                     }};
}

template <class T>
void ModelBuilder::expect_array(const char* name, tensors::DType dtype,
                                const std::vector<std::uint64_t>& shape, AlignedArray<T>& out) {
  CHECK(tensors::size_of(dtype) == sizeof(T), name);
  expected_[name] = {.dtype = dtype, .shape = shape, .take = [&out](const tensors::TensorView& tensor) {
                       out = AlignedArray<T>(tensor.bytes.size() / sizeof(T));
                       copy_bytes(out.data(), tensor.bytes);
                       return finite<T>(std::as_const(out).span());
                     }};
}

void ModelBuilder::expect_rows(const std::string& name, const sparse::RowTableShape& shape,
                               sparse::RowTable& out) {
  expected_[name] = {.dtype = tensors::DType::kF32,
                     .shape = {shape.rows, shape.width},
                     .take = [&out, shape](const tensors::TensorView& tensor) {
                       out = sparse::RowTable(shape, sparse::Moments::kNone);
                       const std::size_t row_bytes = shape.width * sizeof(float);
                       bool all_finite = true;
                       for (std::size_t r = 0; r < shape.rows; ++r) {
                         copy_bytes(out.weights(r), tensor.bytes.subspan(r * row_bytes, row_bytes));
                         all_finite = all_finite && finite<float>({out.weights(r), shape.width});
                       }
                       return all_finite;
                     }};
}

void ModelBuilder::expect_network() {
  sparse::Network& network = model_.network;
  const sparse::NetworkShape& shape = network.shape;
  expect_rows("embedding.weight", {.rows = shape.features, .width = shape.hidden}, network.embedding);
  network.dense.resize(shape.dense.size());
  std::uint64_t inputs = shape.hidden;
  for (std::size_t i = 0; i < shape.dense.size(); ++i) {
    sparse::DenseLayer& layer = network.dense[i];
    const std::uint64_t units = shape.dense[i];
    expect_rows(fmt::format("dense.{}.weight", i + 1), {.rows = units, .width = inputs}, layer.weights);
    expect_array(fmt::format("dense.{}.bias", i + 1).c_str(), tensors::DType::kF32, {units}, layer.bias);
    inputs = units;
  }
  expect_rows("output.weight", {.rows = shape.labels, .width = inputs}, network.output);
  expect_array("output.bias", tensors::DType::kF32, {shape.labels}, network.bias);
}

void ModelBuilder::expect_names(const char* prefix, std::uint64_t count, Names& names) {
  expect_vector(fmt::format("{}.begin", prefix).c_str(), tensors::DType::kU64, count + 1, names.begin);
  expected_[fmt::format("{}.bytes", prefix)] = {
      .dtype = tensors::DType::kU8, .shape = {kAnySize}, .take = [&names](const tensors::TensorView& tensor) {
        names.bytes.resize(tensor.bytes.size());
        copy_bytes(names.bytes.data(), tensor.bytes);
        return true;
      }};
}

void ModelBuilder::expect_instances(const InstanceCounts& counts, std::uint64_t hidden) {
  Instances& instances = model_.instances.emplace();
  expect_vector("instances.feature_begin", tensors::DType::kU32, counts.rows + 1, instances.feature_begin);
  expect_vector("instances.feature", tensors::DType::kU32, counts.feature_entries, instances.feature);
  expect_vector("instances.value", tensors::DType::kF32, counts.feature_entries, instances.value);
  expect_vector("instances.label_begin", tensors::DType::kU32, counts.rows + 1, instances.label_begin);
  expect_vector("instances.label", tensors::DType::kU32, counts.label_entries, instances.label);
  expect_array("instances.hidden", tensors::DType::kBf16, {counts.rows, hidden}, instances.hidden);
}

Result<void> ModelBuilder::add(const std::string& path, const std::string& name,
                               const tensors::TensorView& tensor) {
  const auto found = expected_.find(name);
  if (found == expected_.end()) return {};
  Expected& expected = found->second;
  if (!expected.path.empty()) {
    return bad_tensor(path, name, fmt::format("the same name in two shards, the other one {}", expected.path),
                      "each tensor once");
  }
  expected.path = path;
  bool fits = tensor.dtype == expected.dtype && tensor.shape.size() == expected.shape.size();
  for (std::size_t d = 0; fits && d < expected.shape.size(); ++d) {
    fits = expected.shape[d] == kAnySize || expected.shape[d] == tensor.shape[d];
  }
  if (!fits) {
    return bad_tensor(path, name,
                      fmt::format("{} [{}]", tensors::name(tensor.dtype), fmt::join(tensor.shape, ", ")),
                      fmt::format("{} of the shape that model.json gives", tensors::name(expected.dtype)));
  }
  if (!expected.take(tensor)) return bad_tensor(path, name, not_finite(tensor), "finite numbers");
  return {};
}

// An error for a tensor that was there.
Error ModelBuilder::bad(std::string_view tensor, std::string got, std::string expected) const {
  const auto found = expected_.find(tensor);
  CHECK(found != expected_.end() && !found->second.path.empty(), tensor);
  return bad_tensor(found->second.path, tensor, std::move(got), std::move(expected));
}

Result<Model> ModelBuilder::finish(const std::string& directory) {
  for (const auto& [name, expected] : expected_) {
    if (expected.path.empty())
      return bad_tensor(directory, name, "nothing", "the tensor in one of the shards");
  }
  if (auto checked = check_idf(); !checked.ok()) return checked.error();
  if (auto checked = check_names(); !checked.ok()) return checked.error();
  if (model_.featurizer) {
    if (auto finished = finish_featurizer(); !finished.ok()) return finished.error();
  }
  if (model_.instances) {
    if (auto checked = check_instances(); !checked.ok()) return checked.error();
  }
  return std::move(model_);
}

Result<void> ModelBuilder::check_idf() const {
  const std::vector<float>& idf = model_.weighting.idf;
  const std::size_t features = model_.network.shape.features;
  if (idf.size() > features || (has_idf_ && idf.empty())) {
    return bad("weighting.idf", fmt::format("{} numbers", idf.size()), fmt::format("1..{}", features));
  }
  // A power of a negative number is none.
  const auto wrong = std::ranges::find_if(idf, [](float v) { return v < 0; });
  if (wrong == idf.end()) return {};
  return bad("weighting.idf", fmt::format("{} at {}", *wrong, wrong - idf.begin()), "numbers of at least 0");
}

Result<void> ModelBuilder::check_offsets(std::string_view tensor, const Names& names) const {
  const auto offset = [&](std::size_t i) { return names.begin[i]; };
  const auto wrong = wrong_offset(names.begin.size(), names.bytes.size(), offset);
  if (!wrong) return {};
  return bad(fmt::format("{}.begin", tensor), wrong_offset_text(*wrong, names.begin[*wrong]),
             fmt::format("rising offsets into {}.bytes", tensor));
}

// Requires offsets that fit.
Result<void> ModelBuilder::check_distinct(std::string_view tensor, const Names& names) const {
  std::unordered_map<std::string_view, std::size_t> seen;
  seen.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [first, fresh] = seen.emplace(names[i], i);
    if (fresh) continue;
    return bad(fmt::format("{}.bytes", tensor),
               fmt::format("{} twice, as {} and {}", quote(names[i]), first->second, i), "distinct names");
  }
  return {};
}

Result<void> ModelBuilder::check_names() const {
  if (const Names& names = model_.label_names; !names.begin.empty()) {
    if (auto fit = check_offsets("label_names", names); !fit.ok()) return fit;
    if (auto distinct = check_distinct("label_names", names); !distinct.ok()) return distinct;
  }
  if (const Names& names = model_.feature_names; !names.begin.empty()) {
    if (auto fit = check_offsets("feature_names", names); !fit.ok()) return fit;
    return check_distinct("feature_names", names);
  }
  return {};
}

Result<void> ModelBuilder::finish_featurizer() {
  text::FeaturizerState& state = *model_.featurizer;
  const Names& features = featurizer_features_;
  if (auto fit = check_offsets("featurizer.features", features); !fit.ok()) return fit;
  if (auto distinct = check_distinct("featurizer.features", features); !distinct.ok()) return distinct;
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (!text::can_be_feature(features[i])) {
      return bad("featurizer.features.bytes",
                 fmt::format("{} of {} bytes, feature {}", quote(features[i]), features[i].size(), i),
                 fmt::format("words of at most {} bytes and their parts", text::kMaxWordBytes));
    }
    if (state.document_frequency[i] < 1 || state.document_frequency[i] > state.documents) {
      return bad("featurizer.document_frequency",
                 fmt::format("{}, of feature {}", state.document_frequency[i], i),
                 fmt::format("1..{}", state.documents));
    }
    state.features.emplace_back(features[i]);
  }
  return {};
}

Result<void> ModelBuilder::check_instances() const {
  const sparse::NetworkShape& shape = model_.network.shape;
  const Instances& own = *model_.instances;
  const auto check = [&](const char* begin_name, const std::vector<std::uint32_t>& begin,
                         const char* index_name, const std::vector<std::uint32_t>& index,
                         std::uint64_t bound) -> Result<void> {
    const auto offset = [&](std::size_t i) { return begin[i]; };
    if (const auto wrong = wrong_offset(begin.size(), index.size(), offset))
      return bad(begin_name, wrong_offset_text(*wrong, begin[*wrong]), "rising offsets into the entries");
    const std::size_t rows = begin.size() - 1;
    const auto wrong = wrong_index(rows, bound, offset, [&](std::size_t i) { return index[i]; });
    if (!wrong) return {};
    return bad(index_name, wrong_index_text(row_of_entry(rows, *wrong, offset), *wrong, index[*wrong]),
               fmt::format("rising indices below {}", bound));
  };
  auto good =
      check("instances.feature_begin", own.feature_begin, "instances.feature", own.feature, shape.features);
  if (!good.ok()) return good;
  return check("instances.label_begin", own.label_begin, "instances.label", own.label, shape.labels);
}

}  // namespace gossamer::sparse_engine
