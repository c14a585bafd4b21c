// SPDX-License-Identifier: Apache-2.0
//
// The safetensors file format, for one file. It has 8 bytes little-endian header length, a JSON header that
// maps names to type, shape and byte range, and the tensors back to back. model_file.h decides which tensors
// go into which file.
//
// Thread rule: pure functions; a file object has one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::tensors {

enum class DType { kU8, kBf16, kF16, kU32, kF32, kU64, kI64, kF64 };  // narrow to wide

[[nodiscard]] std::string_view name(DType dtype);  // "U8", "BF16", "F16", ...
[[nodiscard]] std::uint64_t size_of(DType dtype);  // bytes of an element

// The position of the first number that is not finite, where the type is F32, F64 or BF16. `bytes` may be
// unaligned.
[[nodiscard]] std::optional<std::uint64_t> first_not_finite(DType dtype, std::span<const std::byte> bytes);

// A tensor to write. It is dense in memory, or has rows of shape[1] elements that start row_stride_bytes
// apart. Or it is nowhere in one piece, and its rows are asked for in order.
struct TensorSource {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;
  const std::byte* data = nullptr;     // not used when the tensor is empty
  std::uint64_t row_stride_bytes = 0;  // 0: dense. Otherwise the shape has two dimensions
  // Instead of both: fills the row with that number, below shape[0]. In a tensor of one dimension each
  // element is a row.
  std::function<void(std::uint64_t row, std::span<std::byte> out)> read_row = {};

  [[nodiscard]] std::uint64_t bytes() const;  // in the file
};

// A dense tensor [values.size()].
template <class T>
[[nodiscard]] TensorSource vector_tensor(std::string_view name, DType dtype, std::span<const T> values) {
  return {.name = std::string(name),
          .dtype = dtype,
          .shape = {values.size()},
          .data = reinterpret_cast<const std::byte*>(values.data())};
}

struct FileDigest {
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};

// Free text by name, for readers: the header's __metadata__, in UTF-8.
using TensorMetadata = std::map<std::string, std::string>;

// Appends a whole file to `file`, wider types first, else in the given order. Neither syncs nor closes. Names
// must differ. A number that is not finite is kBadData, with the tensor: readers of models refuse it.
[[nodiscard]] Result<FileDigest> write_safetensors(host::WritableFile& file,
                                                   std::span<const TensorSource> tensors,
                                                   const TensorMetadata& metadata = {});

// A tensor in a file's bytes; `bytes` may be unaligned.
struct TensorView {
  DType dtype;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};
using TensorMap = std::map<std::string, TensorView, std::less<>>;

// Views of all tensors of a file; valid as long as `file`. The error is kBadData, with `path` and the tensor,
// if the header breaks a rule of the format. Types must be known, sizes must fit the shape, and byte ranges
// must cover the data without gap or overlap. A header has at most 64 MiB.
[[nodiscard]] Result<TensorMap> parse_safetensors(const std::string& path, std::span<const std::byte> file);

}  // namespace gossamer::tensors
