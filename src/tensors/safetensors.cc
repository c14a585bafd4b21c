// SPDX-License-Identifier: Apache-2.0
#include "tensors/safetensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/digest.h"
#include "json/read_json.h"

namespace gossamer::tensors {
namespace {

using Json = nlohmann::json;

struct TypeRow {
  DType dtype;
  std::string_view name;
  std::uint64_t size;
};
constexpr std::array<TypeRow, 8> kTypes = {{{DType::kU8, "U8", 1},
                                            {DType::kBf16, "BF16", 2},
                                            {DType::kF16, "F16", 2},
                                            {DType::kU32, "U32", 4},
                                            {DType::kF32, "F32", 4},
                                            {DType::kU64, "U64", 8},
                                            {DType::kI64, "I64", 8},
                                            {DType::kF64, "F64", 8}}};
constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{64} << 20;
constexpr std::size_t kDataAlignment = 64;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// Appends to a file through a buffer, and hashes the bytes.
class HashedFile {
 public:
  explicit HashedFile(host::WritableFile& file) : file_(file) { buffer_.reserve(kBufferBytes); }

  Result<void> append(std::span<const std::byte> bytes) {
    if (bytes.size() >= kBufferBytes) {
      if (auto flushed = flush(); !flushed.ok()) return flushed;
      return pass(bytes);
    }
    if (buffer_.size() + bytes.size() > kBufferBytes) {
      if (auto flushed = flush(); !flushed.ok()) return flushed;
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Result<void> flush() {
    if (buffer_.empty()) return {};
    auto passed = pass(buffer_);
    buffer_.clear();
    return passed;
  }
  [[nodiscard]] FileDigest digest() const { return {total_, hash_.value()}; }

 private:
  Result<void> pass(std::span<const std::byte> bytes) {
    hash_.add(bytes);
    total_ += bytes.size();
    return file_.append(bytes);
  }

  host::WritableFile& file_;
  Digest hash_;
  std::vector<std::byte> buffer_;
  std::uint64_t total_ = 0;
};

// Appends a tensor's elements from this one on.
Result<void> append_elements(HashedFile& file, const TensorSource& tensor, std::uint64_t first,
                             std::span<const std::byte> bytes) {
  const auto at = first_not_finite(tensor.dtype, bytes);
  if (!at) return file.append(bytes);
  return Error{.kind = ErrorKind::kBadData,
               .where = fmt::format("tensor {}", tensor.name),
               .what = "cannot save a number that is not finite",
               .got = fmt::format("the one at {}", first + *at),
               .expected = "finite numbers",
               .fix = "train again without the huge values in the data"};
}

Result<void> append_tensor(HashedFile& file, const TensorSource& tensor) {
  if (tensor.bytes() == 0) return {};
  const std::uint64_t width = tensor.bytes() / tensor.shape[0] / size_of(tensor.dtype);
  if (tensor.read_row) {
    std::vector<std::byte> row_bytes(tensor.bytes() / tensor.shape[0]);
    for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
      tensor.read_row(row, row_bytes);
      if (auto done = append_elements(file, tensor, row * width, row_bytes); !done.ok()) return done;
    }
    return {};
  }
  if (tensor.row_stride_bytes == 0) return append_elements(file, tensor, 0, {tensor.data, tensor.bytes()});
  CHECK(tensor.shape.size() == 2, tensor.name, tensor.shape.size());
  const std::uint64_t row_bytes = width * size_of(tensor.dtype);
  CHECK(row_bytes <= tensor.row_stride_bytes, tensor.name, row_bytes, tensor.row_stride_bytes);
  for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
    const std::span bytes(tensor.data + row * tensor.row_stride_bytes, row_bytes);
    if (auto done = append_elements(file, tensor, row * width, bytes); !done.ok()) return done;
  }
  return {};
}

// The position of the first whole number in which all bits of `ones` are set: those of the exponent of an
// infinity or a NaN.
template <class T>
std::optional<std::uint64_t> first_of_ones(std::span<const std::byte> bytes, T ones) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T bits = 0;
    std::memcpy(&bits, bytes.data() + i * sizeof(T), sizeof(T));
    if ((bits & ones) == ones) return i;
  }
  return std::nullopt;
}

Error malformed(const std::string& path, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "not a well-formed safetensors file",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "restore the file from its origin or train again"};
}

std::optional<DType> parse_dtype(const Json& text) {
  if (!text.is_string()) return std::nullopt;
  for (const TypeRow& row : kTypes) {
    if (text.get_ref<const std::string&>() == row.name) return row.dtype;
  }
  return std::nullopt;
}

// Elements of a shape times the element size; empty when it is not a list of counts or passes 2^63.
std::optional<std::uint64_t> bytes_of_shape(const Json& shape, DType dtype) {
  if (!shape.is_array()) return std::nullopt;
  std::uint64_t bytes = size_of(dtype);
  for (const Json& dimension : shape) {
    if (!dimension.is_number_unsigned()) return std::nullopt;
    const auto n = dimension.get<std::uint64_t>();
    if (n != 0 && bytes > (std::uint64_t{1} << 63) / n) return std::nullopt;
    bytes *= n;
  }
  return bytes;
}

// Parses one entry of the header. Its range must lie in `data`.
Result<TensorView> parse_tensor(const std::string& where, const Json& entry,
                                std::span<const std::byte> data) {
  if (!entry.is_object())
    return malformed(where, "a header entry that is no object", "dtype, shape, data_offsets");
  const auto dtype = parse_dtype(entry.value("dtype", Json()));
  if (!dtype) return malformed(where, "an unknown dtype", "U8, BF16, U32, F32 or U64");
  const Json shape = entry.value("shape", Json());
  const auto bytes = bytes_of_shape(shape, *dtype);
  if (!bytes) return malformed(where, "no usable shape", "a list of counts");
  const Json offsets = entry.value("data_offsets", Json());
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return malformed(where, "no usable data_offsets", "[begin, end]");
  }
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data.size() || end - begin != *bytes) {
    return malformed(where, fmt::format("bytes {}..{} of {}", begin, end, data.size()),
                     fmt::format("{} bytes inside the file, as dtype and shape say", *bytes));
  }
  return TensorView{.dtype = *dtype,
                    .shape = shape.get<std::vector<std::uint64_t>>(),
                    .bytes = data.subspan(begin, end - begin)};
}

// The tensors must cover the data without gap or overlap.
Result<void> check_cover(const std::string& path, const TensorMap& tensors, std::span<const std::byte> data) {
  std::vector<std::pair<const std::byte*, const std::byte*>> ranges;
  for (const auto& [name, tensor] : tensors) {
    ranges.emplace_back(tensor.bytes.data(), tensor.bytes.data() + tensor.bytes.size());
  }
  std::sort(ranges.begin(), ranges.end());
  const std::byte* at = data.data();
  for (const auto& [begin, end] : ranges) {
    if (begin != at) return malformed(path, "a gap or an overlap between tensors", "tensors back to back");
    at = end;
  }
  if (at != data.data() + data.size()) {
    return malformed(path, "bytes after the last tensor", "tensors up to the end of the file");
  }
  return {};
}

}  // namespace

std::string_view name(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].name; }
std::uint64_t size_of(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].size; }

std::optional<std::uint64_t> first_not_finite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kF32: return first_of_ones<std::uint32_t>(bytes, 0x7F800000U);
    case DType::kBf16: return first_of_ones<std::uint16_t>(bytes, std::uint16_t{0x7F80});
    case DType::kF64: return first_of_ones<std::uint64_t>(bytes, std::uint64_t{0x7FF} << 52);
    default: return std::nullopt;
  }
}

std::uint64_t TensorSource::bytes() const {
  std::uint64_t total = size_of(dtype);
  for (const std::uint64_t n : shape) total *= n;
  return total;
}

Result<FileDigest> write_safetensors(host::WritableFile& file, std::span<const TensorSource> tensors,
                                     const TensorMetadata& metadata) {
  std::vector<const TensorSource*> order;
  for (const TensorSource& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorSource* a, const TensorSource* b) {
    return size_of(a->dtype) != size_of(b->dtype) ? size_of(a->dtype) > size_of(b->dtype) : a < b;
  });
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const TensorSource* tensor : order) {
    CHECK(!header.contains(tensor->name), tensor->name);
    const std::uint64_t end = offset + tensor->bytes();
    header[tensor->name] = {
        {"dtype", name(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((kDataAlignment - (sizeof(std::uint64_t) + text.size()) % kDataAlignment) % kDataAlignment,
              ' ');

  HashedFile out(file);
  std::array<std::byte, sizeof(std::uint64_t)> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::byte>(text.size() >> (8 * i) & 0xFF);
  if (auto done = out.append(length); !done.ok()) return done.error();
  if (auto done = out.append(std::as_bytes(std::span(text))); !done.ok()) return done.error();
  for (const TensorSource* tensor : order) {
    if (auto done = append_tensor(out, *tensor); !done.ok()) return done.error();
  }
  if (auto done = out.flush(); !done.ok()) return done.error();
  return out.digest();
}

Result<TensorMap> parse_safetensors(const std::string& path, std::span<const std::byte> file) {
  constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);
  if (file.size() < kLengthBytes)
    return malformed(path, fmt::format("{} bytes", file.size()), "8 bytes of header length");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    return malformed(path, fmt::format("a header of {} bytes", length),
                     fmt::format("at most {}", std::min(kMaxHeaderBytes, file.size() - kLengthBytes)));
  }
  const auto* text = reinterpret_cast<const char*>(file.data() + kLengthBytes);
  const Json header = read_json<Json>(std::string_view(text, length));
  if (!header.is_object()) return malformed(path, "a header that is no JSON object", "a JSON object");
  const auto data = file.subspan(kLengthBytes + length);
  TensorMap tensors;
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    auto tensor = parse_tensor(path + ": " + key, entry, data);
    if (!tensor.ok()) return tensor.error();
    tensors.emplace(key, *std::move(tensor));
  }
  if (auto covered = check_cover(path, tensors, data); !covered.ok()) return covered.error();
  return tensors;
}

}  // namespace gossamer::tensors
