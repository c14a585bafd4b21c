// SPDX-License-Identifier: Apache-2.0
//
// A saved model with a number that is not finite, which save_model() refuses to write.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <cstddef>
#include <span>
#include <string>

#include "host/api/files.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine::testing {

// Makes a number of an F64, F32 or BF16 tensor infinite or no number, and mends the checksum of its shard.
inline void overflow(host::Disk& disk, const std::string& directory, const std::string& tensor,
                     std::size_t element) {
  nlohmann::json model = nlohmann::json::parse(*host::read_text(disk, directory + "/model.json"));
  const std::string file = model["weight_map"][tensor];
  std::string text = *host::read_text(disk, directory + "/" + file);
  const auto parsed = tensors::parse_safetensors(file, std::as_bytes(std::span(text)));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  const tensors::TensorView& view = parsed->at(tensor);
  const auto begin = static_cast<std::size_t>(reinterpret_cast<const char*>(view.bytes.data()) - text.data());
  // The last bytes of a little-endian number are its sign, exponent and highest digits.
  const std::size_t end = begin + (element + 1) * tensors::size_of(view.dtype);
  ASSERT_LE(end, begin + view.bytes.size());
  text[end - 2] = view.dtype == tensors::DType::kF64 ? '\xf0' : '\x80';
  text[end - 1] = '\x7f';
  ASSERT_TRUE(host::replace_file(disk, directory + "/" + file, text).ok());
  for (nlohmann::json& shard : model["shards"]) {
    if (shard["file"] == file) shard["xxh3"] = fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
  }
  ASSERT_TRUE(host::replace_file(disk, directory + "/model.json", model.dump()).ok());
}

}  // namespace gossamer::sparse_engine::testing
