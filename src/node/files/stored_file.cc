// SPDX-License-Identifier: Apache-2.0
#include "node/files/stored_file.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "host/api/files.h"

namespace gossamer::node {
namespace {

// Small beside a link's window, large beside what a request costs.
constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
static_assert(kMostFileBytes / kChunkBytes * sizeof(Sha256) + 1024 <= cluster::Manifest::kMaxEncodedBytes);

std::span<const std::byte> chunk_of(std::span<const std::byte> file, std::uint64_t chunk) {
  const std::uint64_t begin = chunk * kChunkBytes;
  return file.subspan(begin, std::min<std::uint64_t>(kChunkBytes, file.size() - begin));
}

}  // namespace

bool is_plain_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMostPlainName && name.front() != '.' && !name.ends_with(".tmp") &&
         std::ranges::all_of(name, plain);
}

Result<StoredFile> describe_file(host::Disk& disk, const std::string& path, const std::string& name) {
  std::shared_ptr<host::MappedFile> mapped;
  if (auto file = disk.map(path); file.ok()) {
    mapped = *std::move(file);
  } else {
    return file.error();
  }
  const std::span<const std::byte> bytes = mapped->bytes();
  if (bytes.size() > kMostFileBytes) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = path,
                 .what = "the file is too large for other nodes",
                 .got = std::to_string(bytes.size()) + " bytes",
                 .expected = "at most " + std::to_string(kMostFileBytes),
                 .fix = "import fewer records"};
  }
  std::vector<Sha256> hashes;
  for (std::uint64_t chunk = 0; chunk * kChunkBytes < bytes.size(); ++chunk)
    hashes.push_back(sha256(Slices{Slice(mapped, chunk_of(bytes, chunk))}));
  return StoredFile{.manifest = cluster::Manifest::of(name, bytes.size(), kChunkBytes, hashes), .path = path};
}

std::string manifest_path(const std::string& path) { return path + ".manifest"; }

Result<void> keep_manifest(host::Disk& disk, const cluster::Manifest& manifest, const std::string& at) {
  return host::replace_file(disk, at, manifest.encoded().bytes());
}

std::optional<StoredFile> find_stored(host::Disk& disk, const StoredPlace& place, const Sha256& id) {
  for (const std::string& wanted : {place.path, place.manifest}) {
    const auto there = disk.exists(wanted);
    if (!there.ok() || !*there) return std::nullopt;
  }
  auto encoded = host::read_text(disk, place.manifest, cluster::Manifest::kMaxEncodedBytes);
  if (!encoded.ok()) return std::nullopt;
  auto manifest = cluster::Manifest::decode({Slice::of(*std::move(encoded))});
  if (!manifest.ok() || manifest->id() != id) return std::nullopt;
  const auto size = disk.file_size(place.path);
  if (!size.ok() || *size != manifest->bytes()) return std::nullopt;
  return StoredFile{.manifest = *std::move(manifest), .path = place.path};
}

Result<cluster::Donor::Read> chunk_reader(host::Disk& disk, const StoredFile& file) {
  auto mapped = disk.map(file.path);
  if (!mapped.ok()) return mapped.error();
  const std::shared_ptr<host::MappedFile> shared = *std::move(mapped);
  if (shared->bytes().size() != file.manifest.bytes()) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = file.path,
                 .what = "the file has changed",
                 .got = std::to_string(shared->bytes().size()) + " bytes",
                 .expected = std::to_string(file.manifest.bytes()) + " bytes",
                 .fix = "leave the run's files alone while it runs"};
  }
  return cluster::Donor::Read([shared](const cluster::Manifest& manifest, std::uint64_t chunk) {
    const auto bytes = shared->bytes().subspan(manifest.offset_of(chunk), manifest.size_of(chunk));
    return Result<Slice>(Slice(shared, bytes));
  });
}

}  // namespace gossamer::node
