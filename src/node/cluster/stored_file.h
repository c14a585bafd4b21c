// SPDX-License-Identifier: Apache-2.0
//
// StoredFile: a whole file on this machine's disk and the manifest of its content (docs/protocols/chunks.md),
// by which others can get it. Its manifest is kept in a file too, mostly beside it, so that who finds both
// knows what it has without reading it.
//
// Thread rule: plain functions. Cost of describe_file(): a SHA-256 of the file.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/chunks/donor.h"
#include "cluster/chunks/manifest.h"
#include "host/api/disk.h"

namespace gossamer::node {

struct StoredFile {
  cluster::Manifest manifest;
  std::string path;
};

// `name` is what the manifest says of it.
[[nodiscard]] Result<StoredFile> describe_file(host::Disk& disk, const std::string& path,
                                               const std::string& name);

// Beside it.
[[nodiscard]] std::string manifest_path(const std::string& path);
[[nodiscard]] Result<void> keep_manifest(host::Disk& disk, const cluster::Manifest& manifest,
                                         const std::string& at);

struct StoredPlace {
  std::string path;
  std::string manifest;  // where that is kept
};
// The file if it lies there and its manifest has this id; nothing if anything differs or cannot be read. Its
// bytes are not looked at but for their number.
[[nodiscard]] std::optional<StoredFile> find_stored(host::Disk& disk, const StoredPlace& place,
                                                    const Sha256& id);

// Maps the file for as long as it is read from.
[[nodiscard]] Result<cluster::Donor::Read> chunk_reader(host::Disk& disk, const StoredFile& file);

}  // namespace gossamer::node
