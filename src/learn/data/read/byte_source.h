// SPDX-License-Identifier: Apache-2.0
//
// ByteSource: the plain bytes of a user's file, whatever it is packed in. Plain, gzip (also .dz, also several
// members one after another) and zstd (also several frames) are read. They are told apart by their first
// bytes, never by their name. Everything is streamed; memory is a few hundred KiB, or for zstd the window of
// the archive (at most 128 MiB).
//
// Errors: those of the disk, and kBadData for a truncated or damaged archive. `where` is then the file, `got`
// the byte of the packed file.
// Owner and thread: one, which may change between calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::data {

// Some programs put it before a text; readers of text leave it out.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

enum class Packing { kPlain, kGzip, kZstd };

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  // Fills `out` from the front; returns the bytes delivered, fewer than asked only at the end, 0 when past
  // it.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<std::byte> out) = 0;
  // The name that messages use: the path, or "stdin".
  [[nodiscard]] virtual const std::string& name() const = 0;
  // What the file is packed in, for messages: `read` unpacks.
  [[nodiscard]] virtual Packing packing() const { return Packing::kPlain; }
};

// Opens a path; "-" means standard input.
[[nodiscard]] Result<std::unique_ptr<ByteSource>> open_bytes(host::Disk& disk, const std::string& path);

// The same over a file that is already open.
[[nodiscard]] Result<std::unique_ptr<ByteSource>> unpack(std::unique_ptr<host::SequentialFile> file,
                                                         std::string name);

// Shows the first bytes, 64 KiB if there are as many, to `look`, and gives a source that has them still. So a
// pipe, which is read once, can be looked at. Errors: those of the source and of `look`.
[[nodiscard]] Result<std::unique_ptr<ByteSource>> look_first(
    std::unique_ptr<ByteSource> source, FunctionRef<Result<void>(std::string_view begin)> look);

// The rest of a source as one string. kBadData if it holds more than `limit_bytes`.
[[nodiscard]] Result<std::string> read_all(ByteSource& source,
                                           std::size_t limit_bytes = std::size_t{1} << 30);

// Bytes that are already in memory, for tests. `content` must outlive the source.
[[nodiscard]] std::unique_ptr<ByteSource> memory_source(std::string name, std::string_view content);

}  // namespace gossamer::data
