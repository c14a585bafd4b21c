// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/model_export.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "engines/sparse/model/model_json.h"
#include "engines/sparse/model/model_tensors.h"
#include "engines/sparse/model/word2vec_text.h"
#include "host/api/files.h"
#include "learn/text/words.h"
#include "tensors/safetensors.h"
#include "tensors/torch_file.h"

namespace gossamer::commands {
namespace {

// Passes bytes on until a stop is asked for. Every append after that is an error.
class StoppableFile final : public host::WritableFile {
 public:
  StoppableFile(std::unique_ptr<host::WritableFile> file, FunctionRef<bool()> stop_requested)
      : file_(std::move(file)), stop_requested_(stop_requested) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    stopped_ = stopped_ || stop_requested_();
    if (stopped_) return Error{.what = "stopped"};
    bytes_ += bytes.size();
    return file_->append(bytes);
  }
  Result<void> sync() override { return file_->sync(); }
  Result<void> close() override { return file_->close(); }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<host::WritableFile> file_;
  FunctionRef<bool()> stop_requested_;
  bool stopped_ = false;
  std::uint64_t bytes_ = 0;
};

// The names that are exported beside a model's weights.
struct Names {
  sparse_engine::Names features;  // one for each embedding row, or for the first rows, or none
  const sparse_engine::Names& labels;
};

Names names_of(const sparse_engine::Model& model) {
  return {.features = model.featurizer ? sparse_engine::featurizer_features_of(model) : model.feature_names,
          .labels = model.label_names};
}

Result<void> check_utf8(const sparse_engine::Names& names, std::string_view what) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (text::valid_utf8_prefix(names[i]) == names[i].size()) continue;
    return Error{.kind = ErrorKind::kBadData,
                 .where = fmt::format("{} {}", what, i),
                 .what = "the name is not valid UTF-8",
                 .got = {},
                 .expected = "UTF-8",
                 .fix = "restore the model directory from its origin or train again"};
  }
  return {};
}

tensors::TensorMetadata metadata_of(const sparse_engine::Model& model) {
  std::string hidden = "h = activation(sum of x[f] * embedding.weight[f]); ";
  if (const std::size_t dense = model.network.dense.size(); dense > 0) {
    hidden += fmt::format("for i in 1..{}: h = activation(dense.i.weight @ h + dense.i.bias); ", dense);
  }
  return {{"producer", "gossamer"},
          {"task", model.task},
          {"activation", std::string(sparse_engine::name(model.activation))},
          {"weighting", fmt::format(R"({{"counts": "{}", "l2": {}, "idf": {}}})",
                                    sparse_engine::name(model.weighting.counts), model.weighting.l2,
                                    !model.weighting.idf.empty())},
          {"scores", hidden + "output.weight @ h + output.bias"}};
}

// The tensors of the model directory that are weights or names.
std::vector<tensors::TensorSource> weights_of(const sparse_engine::Model& model) {
  const sparse_engine::Names none;
  std::vector<tensors::TensorSource> weights;
  for (tensors::TensorSource& tensor : sparse_engine::tensors_of(model, none)) {
    const bool wanted = tensor.name == "embedding.weight" || tensor.name.starts_with("output.") ||
                        tensor.name.starts_with("dense.") ||
                        (tensor.name == "weighting.idf" && tensor.bytes() > 0);
    if (wanted) weights.push_back(std::move(tensor));
  }
  return weights;
}

void add_names(std::vector<tensors::TensorSource>& tensors, const std::string& prefix,
               const sparse_engine::Names& names) {
  if (names.size() == 0) return;
  tensors.push_back(tensors::vector_tensor<char>(prefix + ".bytes", tensors::DType::kU8, names.bytes));
  tensors.push_back(
      tensors::vector_tensor<std::uint64_t>(prefix + ".begin", tensors::DType::kU64, names.begin));
}

Result<ExportResult> write_safetensors(host::WritableFile& file, const sparse_engine::Model& model,
                                       const Names& names) {
  std::vector<tensors::TensorSource> tensors = weights_of(model);
  tensors.push_back(
      tensors::vector_tensor<std::uint32_t>("label_count", tensors::DType::kU32, model.label_count));
  add_names(tensors, "feature_names", names.features);
  add_names(tensors, "label_names", names.labels);
  if (auto done = tensors::write_safetensors(file, tensors, metadata_of(model)); !done.ok())
    return done.error();
  return ExportResult{.entries = tensors.size()};
}

Result<ExportResult> write_torch(host::WritableFile& file, const sparse_engine::Model& model,
                                 const Names& names) {
  std::vector<tensors::TensorSource> tensors = weights_of(model);
  const std::vector<std::uint64_t> counts(model.label_count.begin(), model.label_count.end());
  tensors.push_back(tensors::vector_tensor<std::uint64_t>("label_count", tensors::DType::kU64, counts));
  std::vector<tensors::StringList> lists;
  const auto add_list = [&lists](const char* key, const sparse_engine::Names& list) {
    if (list.size() == 0) return;
    lists.push_back({.key = key, .size = list.size(), .name = [&list](std::size_t i) { return list[i]; }});
  };
  add_list("feature_names", names.features);
  add_list("label_names", names.labels);
  const auto done =
      tensors::write_torch_file(file, {.tensors = tensors, .lists = lists, .strings = metadata_of(model)});
  if (!done.ok()) return done.error();
  return ExportResult{.entries = tensors.size()};
}

Result<ExportResult> write_vectors(host::WritableFile& file, const sparse_engine::Model& model,
                                   const Names& names, VectorsOf vectors) {
  const bool features = vectors == VectorsOf::kFeatures;
  const sparse_engine::Names& list = features ? names.features : names.labels;
  const sparse_engine::Names& other = features ? names.labels : names.features;
  if (list.size() == 0) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = {},
                 .what = fmt::format("the {} of this model have no names", features ? "features" : "labels"),
                 .got = "numbers",
                 .expected = "names: word2vec text is one named vector a line",
                 .fix = fmt::format("export safetensors or torch{}",
                                    other.size() == 0 ? ""
                                    : features        ? ", or the vectors of labels: --labels"
                                                      : ", or the vectors of features: without --labels")};
  }
  const auto report =
      sparse_engine::write_word2vec(file, {.rows = features ? model.network.embedding : model.network.output,
                                           .name = [&list](std::size_t i) { return list[i]; },
                                           .count = list.size()});
  if (!report.ok()) return report.error();
  return ExportResult{.entries = report->vectors, .repeated = report->repeated};
}

Result<ExportResult> write(host::WritableFile& file, const sparse_engine::Model& model,
                           const ExportRequest& request) {
  const Names names = names_of(model);
  if (auto valid = check_utf8(names.features, "feature"); !valid.ok()) return valid.error();
  if (auto valid = check_utf8(names.labels, "label"); !valid.ok()) return valid.error();
  switch (request.format) {
    case ExportFormat::kSafetensors: return write_safetensors(file, model, names);
    case ExportFormat::kTorch: return write_torch(file, model, names);
    case ExportFormat::kWord2vec: break;
  }
  return write_vectors(file, model, names, request.vectors);
}

// The name of an export that is not finished. No user's own file has this name, so leavings of a
// killed export are overwritten.
std::string unfinished(const std::string& path) { return path + ".gossamer-export"; }

Result<void> publish(host::Disk& disk, StoppableFile& file, const ExportRequest& request) {
  if (auto synced = file.sync(); !synced.ok()) return synced;
  if (auto closed = file.close(); !closed.ok()) return closed;
  if (auto renamed = disk.rename(unfinished(request.path), request.path); !renamed.ok()) return renamed;
  return disk.sync_directory(host::parent(request.path));
}

}  // namespace

Result<ExportResult> export_model(host::Disk& disk, const sparse_engine::Model& model,
                                  const ExportRequest& request) {
  auto there = disk.exists(request.path);
  if (!there.ok()) return there.error();
  if (*there) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = request.path,
                 .what = "there is already something of this name",
                 .got = {},
                 .expected = "a file that does not exist yet",
                 .fix = "remove it, or give another --out"};
  }
  const std::string fresh = unfinished(request.path);
  auto opened = disk.open_writable(fresh, host::WriteMode::kTruncate);
  if (!opened.ok()) return opened.error();
  StoppableFile file(std::move(*opened), request.stop_requested);
  auto result = write(file, model, request);
  Result<void> published;
  if (result.ok()) published = publish(disk, file, request);
  if (result.ok() && published.ok()) {
    (*result).bytes = file.bytes();
    return result;
  }
  // The first error is the one to report. A failing clean-up adds nothing to it.
  static_cast<void>(disk.remove_all(fresh).ok());
  if (file.stopped()) return ExportResult{.stopped = true};
  return result.ok() ? published.error() : result.error();
}

}  // namespace gossamer::commands
