// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/model/lm_model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/printable.h"
#include "host/api/files.h"
#include "learn/tokens/sentencepiece_tokenizer.h"
#include "tensors/model_fields.h"
#include "tensors/safetensors.h"

namespace gossamer::pipeline {
namespace {

constexpr const char* kModelJson = "/model.json";

void check_whole(const StageBackend& model, const LmShape& shape) {
  CHECK(model.cut() == (StageCut{.first = 0, .last = shape.layers, .layers = shape.layers}));
  CHECK(model.vocabulary() == shape.vocabulary && model.context() == shape.context &&
            model.width() == shape.width,
        model.vocabulary(), model.context(), model.width());
}

tensors::DType type_of(const Numbers& numbers) {
  return std::holds_alternative<std::span<float>>(numbers) ? tensors::DType::kF32 : tensors::DType::kF64;
}

std::span<const std::byte> weight_bytes(const StageTensor& tensor) {
  return std::visit([](auto numbers) { return std::as_bytes(numbers); }, tensor.weights);
}

// The position of the first number that is not finite.
std::optional<std::size_t> first_not_finite(const Numbers& all) {
  return std::visit(
      [](auto numbers) -> std::optional<std::size_t> {
        const auto bad = std::ranges::find_if_not(numbers, [](auto x) { return std::isfinite(x); });
        if (bad == numbers.end()) return std::nullopt;
        return static_cast<std::size_t>(bad - numbers.begin());
      },
      all);
}

Error not_savable(const std::string& directory, std::string got) {
  return {.where = directory,
          .what = "cannot save a model with a number that is not finite",
          .got = std::move(got),
          .expected = "finite numbers",
          .fix = "train again with a lower train.lr"};
}

Result<void> check_savable(const std::string& directory, const LmToSave& save) {
  for (const StageTensor& tensor : save.model.tensors()) {
    if (const auto at = first_not_finite(tensor.weights))
      return not_savable(directory, fmt::format("tensor {} at {}", tensor.name, *at));
  }
  return {};
}

template <class From, class To>
void copy_numbers(std::span<const std::byte> bytes, std::span<To> out) {
  CHECK(bytes.size() == out.size() * sizeof(From), bytes.size(), out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    From number;
    std::memcpy(&number, bytes.data() + i * sizeof(From), sizeof(From));
    out[i] = static_cast<To>(number);
  }
}

// Fills the weights of a backend, tensor by tensor.
class LmWeightReader {
 public:
  LmWeightReader(tensors::DType dtype, StageBackend& model) : dtype_(dtype) {
    for (const StageTensor& tensor : model.tensors())
      CHECK(places_.emplace(tensor.name, Place{.tensor = &tensor}).second, tensor.name);
  }

  Result<void> add(const std::string& path, const std::string& name, const tensors::TensorView& tensor) {
    const auto found = places_.find(name);
    if (found == places_.end()) {
      return tensors::bad_tensor(path, quote(name), "a tensor that no model of this shape has",
                                 "the tensors of the shape alone");
    }
    Place& place = found->second;
    if (!place.path.empty()) {
      return tensors::bad_tensor(path, name,
                                 fmt::format("the same name in two shards, the other one {}", place.path),
                                 "each tensor once");
    }
    place.path = path;
    const StageTensor& into = *place.tensor;
    if (tensor.dtype != dtype_ || tensor.shape != into.shape) {
      return tensors::bad_tensor(
          path, name, fmt::format("{} [{}]", tensors::name(tensor.dtype), fmt::join(tensor.shape, ", ")),
          fmt::format("{} [{}], as model.json says", tensors::name(dtype_), fmt::join(into.shape, ", ")));
    }
    std::visit(
        [&](auto out) {
          if (dtype_ == tensors::DType::kF32) {
            copy_numbers<float>(tensor.bytes, out);
          } else {
            copy_numbers<double>(tensor.bytes, out);
          }
        },
        into.weights);
    if (const auto at = first_not_finite(into.weights)) {
      return tensors::bad_tensor(path, name, fmt::format("a number that is not finite, the one at {}", *at),
                                 "finite numbers");
    }
    return {};
  }

  // After all shards.
  [[nodiscard]] Result<void> finish(const std::string& directory) const {
    for (const auto& [name, place] : places_) {
      if (place.path.empty())
        return tensors::bad_tensor(directory, name, "nothing", "the tensor in one of the shards");
    }
    return {};
  }

 private:
  struct Place {
    const StageTensor* tensor;
    std::string path = {};  // the file that had it; empty: none yet
  };

  tensors::DType dtype_;
  std::map<std::string, Place, std::less<>> places_;
};

std::string tokenizer_path(const OpenedLm& opened) {
  return fmt::format("{}/{}", opened.directory, tokens::kTokenizerFile);
}

Error another_tokenizer(const std::string& path, std::string got, const LmTokenizer& expected) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "this is not the tokenizer of the model",
          .got = std::move(got),
          .expected = fmt::format("XXH3-64 {:016x}, as model.json says", expected.digest),
          .fix = "restore the model directory from its origin or train again"};
}

}  // namespace

Result<void> save_lm_model(host::Disk& disk, const std::string& directory, const LmToSave& save) {
  check_whole(save.model, save.about.shape);
  if (auto savable = check_savable(directory, save); !savable.ok()) return savable;
  const std::span<const StageTensor> all = save.model.tensors();
  const tensors::DType dtype = type_of(all.front().weights);
  tensors::ModelTensors files{.tensors = {}, .max_shard_bytes = save.max_shard_bytes};
  if (!save.tokenizer.empty()) files.files.emplace(tokens::kTokenizerFile, save.tokenizer);
  for (const StageTensor& tensor : all) {
    CHECK(type_of(tensor.weights) == dtype, tensor.name);
    files.tensors.push_back(
        {.name = tensor.name, .dtype = dtype, .shape = tensor.shape, .data = weight_bytes(tensor).data()});
  }
  return tensors::save_model_directory(
      disk, directory, std::move(files),
      [&](const tensors::WrittenShards& written) { return format_lm_header(save.about, dtype, written); });
}

Result<OpenedLm> open_lm_model(host::Disk& disk, const std::string& directory) {
  auto found = tensors::read_model_text(disk, directory);
  if (!found.ok()) return found.error();
  auto header = parse_lm_header(found->path, found->text);
  if (!header.ok()) return header.error();
  if (auto there = tensors::check_shard_sizes(disk, found->directory, header->shards); !there.ok())
    return there.error();
  std::uint64_t bytes = 0;
  for (const tensors::ShardEntry& shard : header->shards) bytes += shard.bytes;
  const std::uint64_t least = least_numbers(header->about.shape) * tensors::size_of(header->dtype);
  if (bytes < least) {
    return tensors::bad_field(found->path, "model", fmt::format("a shape for files of {} bytes", bytes),
                              fmt::format("files of at least {} bytes for this shape", least));
  }
  return OpenedLm{.directory = std::move(found->directory), .header = *std::move(header)};
}

Result<void> load_lm_model(host::Disk& disk, const OpenedLm& opened, StageBackend& model) {
  check_whole(model, opened.header.about.shape);
  LmWeightReader reader(opened.header.dtype, model);
  for (const tensors::ShardEntry& shard : opened.header.shards) {
    auto loaded = tensors::read_shard(
        disk, opened.directory, shard,
        [&reader](const std::string& path, const std::string& name, const tensors::TensorView& tensor) {
          return reader.add(path, name, tensor);
        });
    if (!loaded.ok()) return loaded;
  }
  if (auto all = reader.finish(opened.directory); !all.ok()) return all;
  return model.weights_changed();
}

Result<std::string> read_tokenizer(host::Disk& disk, const OpenedLm& opened) {
  const LmTokenizer& wanted = opened.header.about.tokenizer;
  if (wanted.name != tokens::kSentencePieceName) return std::string();
  const std::string path = tokenizer_path(opened);
  const auto there = disk.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return another_tokenizer(path, "no such file", wanted);
  auto model = host::read_text(disk, path, tokens::kMostTokenizerBytes);
  if (!model.ok()) return model;
  if (const std::uint64_t digest = tokens::sentencepiece_digest(*model); digest != wanted.digest)
    return another_tokenizer(path, fmt::format("XXH3-64 {:016x}", digest), wanted);
  return model;
}

Result<std::unique_ptr<tokens::Tokenizer>> tokenizer_of(host::Disk& disk, const OpenedLm& opened,
                                                        const LoadTokenizer& load) {
  const LmAbout& about = opened.header.about;
  const std::string json = opened.directory + kModelJson;
  auto model = read_tokenizer(disk, opened);
  if (!model.ok()) return model.error();
  const std::string where = model->empty() ? json : tokenizer_path(opened);
  auto tokenizer = load(about.tokenizer.name, *std::move(model), where);
  if (!tokenizer.ok()) return tokenizer;
  if ((*tokenizer)->digest() != about.tokenizer.digest) {
    return Error{
        .kind = ErrorKind::kRefused,
        .where = json,
        .what = "this program does not have the tokenizer of the model",
        .got = fmt::format("{}, digest {:016x}", quote(about.tokenizer.name), about.tokenizer.digest),
        .expected = fmt::format("'{}', digest {:016x}", (*tokenizer)->name(), (*tokenizer)->digest()),
        .fix = "use the version of gossamer that wrote it, or train again"};
  }
  if (about.shape.vocabulary != (*tokenizer)->vocabulary()) {
    return tensors::bad_field(json, "model.vocabulary", fmt::format("{}", about.shape.vocabulary),
                              fmt::format("{}, that of its tokenizer", (*tokenizer)->vocabulary()));
  }
  return tokenizer;
}

}  // namespace gossamer::pipeline
