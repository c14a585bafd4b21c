// SPDX-License-Identifier: Apache-2.0
//
// A file that torch.load(FILE, weights_only=True) reads, with mmap=True as well: a dict of tensors, lists of
// strings and strings. It is PyTorch's zip form (since 1.6):
// - data.pkl: a pickle of protocol 2, in which a tensor is a call of torch._utils._rebuild_tensor_v2 on a
//   numbered storage
// - data/0, data/1, ...: the storages
// - byteorder and version
//
// The pickle uses 20 opcodes of pickle's own grammar. We only write it, and never execute any of it.
//
// Thread rule: pure function; the file has one owner.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"
#include "tensors/safetensors.h"

namespace gossamer::tensors {

// A list of `size` strings of valid UTF-8; name(i) is valid until the next call.
struct StringList {
  std::string key;
  std::size_t size = 0;
  std::function<std::string_view(std::size_t)> name;
};

struct TorchDict {
  std::span<const TensorSource> tensors;
  std::span<const StringList> lists;
  TensorMetadata strings;  // strings by key
};

// Appends a whole file: tensors, lists, strings, in their order. Neither syncs nor closes. Keys must differ.
// U8, BF16 and F32 keep their type. U64 becomes torch.int64, so its values must be below 2^63. U32, for which
// PyTorch has no storage, is our bug.
[[nodiscard]] Result<void> write_torch_file(host::WritableFile& file, const TorchDict& dict);

}  // namespace gossamer::tensors
