// SPDX-License-Identifier: Apache-2.0
//
// StoredFile is a whole file on this machine's disk with the manifest of its content
// (docs/protocols/chunks.md), by which other nodes can get it. The manifest is kept in a file too, mostly
// beside the content. A process that finds both files knows what it has without reading the content.
//
// Thread rule: plain functions. Cost of describe_file(): a SHA-256 of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/chunks/donor.h"
#include "cluster/chunks/manifest.h"
#include "host/api/disk.h"

namespace gossamer::node {

// Whether a file that a peer names may have that name in a directory: letters, digits, '-' and '.', neither
// hidden nor temporary.
inline constexpr std::size_t kMostPlainName = 100;
[[nodiscard]] bool is_plain_name(std::string_view name);

struct StoredFile {
  cluster::Manifest manifest;
  std::string path;
};

// The most bytes of a file: its manifest has 32 for each chunk of 1 MiB.
inline constexpr std::uint64_t kMostFileBytes = std::uint64_t{500} << 30;
// Describes a file. `name` is the name in the manifest. kUsage for a file of more than kMostFileBytes.
[[nodiscard]] Result<StoredFile> describe_file(host::Disk& disk, const std::string& path,
                                               const std::string& name);

// The path of the manifest beside a file.
[[nodiscard]] std::string manifest_path(const std::string& path);
[[nodiscard]] Result<void> keep_manifest(host::Disk& disk, const cluster::Manifest& manifest,
                                         const std::string& at);

struct StoredPlace {
  std::string path;
  std::string manifest;  // path of its manifest
};
// The file, if it lies there and its manifest has this id. Nothing if anything differs or cannot be read.
// Only the number of its bytes is looked at, not the bytes.
[[nodiscard]] std::optional<StoredFile> find_stored(host::Disk& disk, const StoredPlace& place,
                                                    const Sha256& id);

// A function that reads chunks of a file. It maps the file for as long as it is used.
[[nodiscard]] Result<cluster::Donor::Read> chunk_reader(host::Disk& disk, const StoredFile& file);

}  // namespace gossamer::node
