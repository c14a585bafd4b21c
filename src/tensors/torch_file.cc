// SPDX-License-Identifier: Apache-2.0
#include "tensors/torch_file.h"

#include <fmt/format.h>

#include "base/check.h"
#include "tensors/stored_zip.h"

namespace gossamer::tensors {
namespace {

std::string_view storage_class(DType dtype) {
  switch (dtype) {
    case DType::kU8: return "ByteStorage";
    case DType::kBf16: return "BFloat16Storage";
    case DType::kF16: return "HalfStorage";
    case DType::kF32: return "FloatStorage";
    case DType::kF64: return "DoubleStorage";
    case DType::kU64:
    case DType::kI64: return "LongStorage";
    case DType::kU32: break;
  }
  CHECK(false, "no storage of this type in PyTorch");
  return {};
}

// Opcodes of Python's pickle, protocol 2 (Lib/pickletools.py describes each).
class Pickle {
 public:
  Pickle() { text_ = "\x80\x02"; }

  Pickle& op(char code) {
    text_ += code;
    return *this;
  }
  Pickle& global(std::string_view module, std::string_view name) {
    text_ += fmt::format("c{}\n{}\n", module, name);
    return *this;
  }
  Pickle& string(std::string_view value) {
    text_ += 'X';
    little_endian(value.size(), 4);
    text_ += value;
    return *this;
  }
  Pickle& integer(std::uint64_t value) {
    if (value < 0x8000'0000) {
      text_ += 'J';
      little_endian(value, 4);
    } else {
      text_ += "\x8a\x09";  // nine bytes, so the sign bit is never set
      little_endian(value, 8);
      text_ += '\0';
    }
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void little_endian(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xFF);
  }
  std::string text_;
};

constexpr char kMark = '(';
constexpr char kTuple = 't';
constexpr char kReduce = 'R';

std::uint64_t elements(const TensorSource& tensor) { return tensor.bytes() / size_of(tensor.dtype); }

// _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks)
void add_tensor(Pickle& pickle, const TensorSource& tensor, std::string_view storage) {
  pickle.string(tensor.name).global("torch._utils", "_rebuild_tensor_v2").op(kMark);
  pickle.op(kMark).string("storage").global("torch", storage_class(tensor.dtype));
  pickle.string(storage).string("cpu").integer(elements(tensor)).op(kTuple).op('Q');
  pickle.integer(0).op(kMark);
  for (const std::uint64_t size : tensor.shape) pickle.integer(size);
  pickle.op(kTuple).op(kMark);
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::uint64_t stride = 1;
    for (std::size_t after = d + 1; after < tensor.shape.size(); ++after) stride *= tensor.shape[after];
    pickle.integer(stride);
  }
  pickle.op(kTuple).op('\x89').global("collections", "OrderedDict").op(')').op(kReduce);
  pickle.op(kTuple).op(kReduce);
}

void add_list(Pickle& pickle, const StringList& list) {
  pickle.string(list.key).op(']').op(kMark);
  for (std::size_t i = 0; i < list.size; ++i) pickle.string(list.name(i));
  pickle.op('e');
}

ByteRows bytes_of(const TensorSource& tensor) {
  if (tensor.bytes() == 0) return {};
  if (tensor.row_stride_bytes == 0) {
    return {.data = tensor.data, .rows = 1, .row_bytes = tensor.bytes(), .stride_bytes = tensor.bytes()};
  }
  CHECK(tensor.shape.size() == 2, tensor.name, tensor.shape.size());
  return {.data = tensor.data,
          .rows = tensor.shape[0],
          .row_bytes = tensor.shape[1] * size_of(tensor.dtype),
          .stride_bytes = tensor.row_stride_bytes};
}

}  // namespace

Result<void> write_torch_file(host::WritableFile& file, const TorchDict& dict) {
  const std::span<const TensorSource> tensors = dict.tensors;
  Pickle pickle;
  pickle.op('}').op(kMark);
  for (std::size_t i = 0; i < tensors.size(); ++i) add_tensor(pickle, tensors[i], fmt::format("{}", i));
  for (const StringList& list : dict.lists) add_list(pickle, list);
  for (const auto& [key, value] : dict.strings) pickle.string(key).string(value);
  pickle.op('u').op('.');
  StoredZip zip(file);
  // The reader takes the archive's name from the first file.
  if (auto done = zip.add("weights/data.pkl", pickle.text()); !done.ok()) return done;
  if (auto done = zip.add("weights/byteorder", "little"); !done.ok()) return done;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (auto done = zip.add(fmt::format("weights/data/{}", i), bytes_of(tensors[i])); !done.ok()) return done;
  }
  if (auto done = zip.add("weights/version", "3\n"); !done.ok()) return done;
  return zip.finish();
}

}  // namespace gossamer::tensors
