// SPDX-License-Identifier: Apache-2.0
//
// IncomingFile is a file on its way to this machine, chunk by chunk in any order. Chunks lie in PATH.incoming
// until all are there. Then PATH appears whole, with its manifest beside it, and survives a crash. A process
// that starts again goes on with the chunks that lie there and have the right hash.
//
// While the file is put together the disk has it twice. Thread rule: one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/sha256.h"
#include "base/slice.h"
#include "cluster/chunks/manifest.h"
#include "host/api/disk.h"
#include "node/files/stored_file.h"

namespace gossamer::node {

class IncomingFile {
 public:
  // Opens PATH with the chunks that an earlier attempt has left of content `id`. Chunks of other content
  // are removed. Makes directories.
  [[nodiscard]] static Result<std::shared_ptr<IncomingFile>> open(host::Disk& disk, const std::string& path,
                                                                  const Sha256& id);
  // The manifest; nothing until it is known.
  [[nodiscard]] const std::optional<cluster::Manifest>& manifest() const { return manifest_; }
  [[nodiscard]] const cluster::ChunkSet& here() const { return here_; }

  // Takes the manifest. kFailed where the disk has no room for the whole file.
  [[nodiscard]] Result<void> know(cluster::Manifest manifest);
  // Writes a chunk. Requires the right bytes, and a manifest.
  [[nodiscard]] Result<void> write(std::uint64_t chunk, const Slices& content);
  // Puts the file together. kFailed where a write failed.
  [[nodiscard]] Result<StoredFile> finish();

 private:
  IncomingFile(host::Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}

  [[nodiscard]] std::string directory() const { return path_ + ".incoming"; }
  [[nodiscard]] std::string chunk_path(std::uint64_t chunk) const;
  [[nodiscard]] Result<void> take_up();
  [[nodiscard]] Result<void> check_room() const;
  [[nodiscard]] Result<void> put_together(host::WritableFile& file) const;

  host::Disk& disk_;
  const std::string path_;
  std::optional<cluster::Manifest> manifest_;
  cluster::ChunkSet here_;
};

}  // namespace gossamer::node
