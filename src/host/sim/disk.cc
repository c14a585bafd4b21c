// SPDX-License-Identifier: Apache-2.0
#include "host/sim/disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "host/api/files.h"

namespace gossamer::host {

namespace {

// Reasons in the words of a real system.
constexpr const char* kMissing = "No such file or directory";
constexpr const char* kIsDirectory = "Is a directory";
constexpr const char* kNotDirectory = "Not a directory";
constexpr const char* kNotEmpty = "Directory not empty";
constexpr const char* kInvalid = "Invalid argument";
constexpr const char* kFull = "No space left on device";
constexpr const char* kBroken = "Input/output error";
constexpr const char* kCrashed = "crashed";

using Node = FileTree::Node;
using Place = FileTree::Place;
constexpr Node kNone = FileTree::kNone;

Error failed(const std::string& path, std::string_view what, const char* cause) {
  return Error{.kind = ErrorKind::kFailed, .where = path, .what = fmt::format("{}: {}", what, cause)};
}

const char* why_missing(const Place& place) { return place.below_file ? kNotDirectory : kMissing; }

// Why the system refuses a rename, or null.
const char* rename_problem(const FileTree& tree, const Place& from, const Place& to) {
  if (from.node == FileTree::kRoot || to.node == FileTree::kRoot) return kInvalid;
  if (from.parent == kNone) return why_missing(from);
  if (to.parent == kNone) return why_missing(to);
  if (from.node == kNone) return why_missing(from);
  if (tree.is_directory(from.node) && to.parent != from.parent && tree.contains(from.node, to.parent)) {
    return kInvalid;
  }
  if (to.node == kNone || to.node == from.node) return nullptr;
  if (tree.contains(to.node, from.parent)) return kNotEmpty;
  if (!tree.is_directory(to.node)) return tree.is_directory(from.node) ? kNotDirectory : nullptr;
  if (!tree.is_directory(from.node)) return kIsDirectory;
  return tree.names(to.node).empty() ? nullptr : kNotEmpty;
}

class SimMappedFile final : public MappedFile {
 public:
  explicit SimMappedFile(std::vector<std::byte> content) : content_(std::move(content)) {}
  [[nodiscard]] std::span<const std::byte> bytes() const override { return content_; }

 private:
  std::vector<std::byte> content_;
};

}  // namespace

class SimSequentialFile final : public SequentialFile {
 public:
  SimSequentialFile(SimDisk& disk, std::string path, Node node)
      : disk_(disk), path_(std::move(path)), node_(node) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    const std::scoped_lock hold(disk_.mutex_);
    if (const char* fault = disk_.begin()) return failed(path_, "cannot read", fault);
    const std::vector<std::byte>& bytes = disk_.tree_.bytes(node_);
    const std::size_t from = std::min(offset_, bytes.size());  // it may have been truncated
    const std::size_t size = std::min(out.size(), bytes.size() - from);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), size, out.begin());
    offset_ += size;
    return size;
  }

 private:
  SimDisk& disk_;
  std::string path_;
  Node node_;
  std::size_t offset_ = 0;
};

class SimWritableFile final : public WritableFile {
 public:
  SimWritableFile(SimDisk& disk, std::string path, Node node)
      : disk_(disk), path_(std::move(path)), node_(node) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    const std::scoped_lock hold(disk_.mutex_);
    CHECK(open_, path_);
    return disk_.append(node_, path_, bytes);
  }

  Result<void> sync() override {
    const std::scoped_lock hold(disk_.mutex_);
    CHECK(open_, path_);
    if (const char* fault = disk_.begin()) return failed(path_, "cannot sync", fault);
    disk_.tree_.sync_bytes(node_);
    return {};
  }

  Result<void> close() override {
    const std::scoped_lock hold(disk_.mutex_);
    CHECK(open_, path_);
    open_ = false;
    if (const char* fault = disk_.begin()) return failed(path_, "cannot close", fault);
    return {};
  }

 private:
  SimDisk& disk_;
  std::string path_;
  Node node_;
  bool open_ = true;
};

class SimDirectoryLock final : public DirectoryLock {
 public:
  SimDirectoryLock(SimDisk& disk, Node directory) : disk_(disk), directory_(directory) {}
  ~SimDirectoryLock() override { disk_.unlock(directory_); }

 private:
  SimDisk& disk_;
  Node directory_;
};

SimDisk::~SimDisk() { CHECK(locked_.empty(), locked_.size()); }

void SimDisk::restart_count(const SimDiskOptions& options) {
  const std::scoped_lock hold(mutex_);
  options_ = options;
  operations_ = 0;
}

std::uint64_t SimDisk::operations() const {
  const std::scoped_lock hold(mutex_);
  return operations_;
}

std::unique_ptr<SimDisk> SimDisk::after_crash() const {
  const std::scoped_lock hold(mutex_);
  Rng rng(options_.seed, Purpose::kFault);
  auto later = std::make_unique<SimDisk>();
  later->options_.capacity_bytes = options_.capacity_bytes;
  later->tree_ = tree_.after_crash(rng, options_.torn_tail);
  return later;
}

const char* SimDisk::begin() {
  const std::uint64_t operation = operations_++;
  if (options_.crash_at_operation && operation >= *options_.crash_at_operation) return kCrashed;
  if (options_.fail_at_operation == operation) return kBroken;
  return nullptr;
}

Result<Node> SimDisk::find_file(const std::string& path, const char* what) const {
  const Place place = tree_.resolve(path);
  if (place.node == kNone) return failed(path, what, why_missing(place));
  if (tree_.is_directory(place.node)) return failed(path, what, kIsDirectory);
  return place.node;
}

Result<std::unique_ptr<SequentialFile>> SimDisk::open_sequential(const std::string& path) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot open for reading";
  if (const char* fault = begin()) return failed(path, kWhat, fault);
  const auto file = find_file(path, kWhat);
  if (!file.ok()) return file.error();
  return std::unique_ptr<SequentialFile>(std::make_unique<SimSequentialFile>(*this, path, *file));
}

Result<std::unique_ptr<WritableFile>> SimDisk::open_writable(const std::string& path, WriteMode mode) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot open for writing";
  if (const char* fault = begin()) return failed(path, kWhat, fault);
  const Place place = tree_.resolve(path);
  Node file = place.node;
  if (file == kNone) {
    if (place.parent == kNone) return failed(path, kWhat, why_missing(place));
    file = tree_.make_file(place);
  } else if (tree_.is_directory(file)) {
    return failed(path, kWhat, kIsDirectory);
  } else if (mode != WriteMode::kAppend) {
    tree_.truncate(file);
  }
  return std::unique_ptr<WritableFile>(std::make_unique<SimWritableFile>(*this, path, file));
}

Result<void> SimDisk::append(Node file, const std::string& path, std::span<const std::byte> bytes) {
  constexpr const char* kWhat = "cannot write";
  const char* fault = begin();
  if (fault == kCrashed) return failed(path, kWhat, fault);
  std::uint64_t room = bytes.size();
  if (fault == kBroken) {
    room = Rng(options_.seed, Purpose::kFault, operations_).below(bytes.size() + 1);
  } else {
    const std::uint64_t used = tree_.used_bytes();
    const std::uint64_t free = options_.capacity_bytes - std::min(used, options_.capacity_bytes);
    if (free < room) {
      fault = kFull;
      room = free;
    }
  }
  tree_.append(file, bytes.first(room));
  if (fault != nullptr) return failed(path, kWhat, fault);
  return {};
}

Result<std::unique_ptr<MappedFile>> SimDisk::map(const std::string& path) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot map";
  if (const char* fault = begin()) return failed(path, kWhat, fault);
  const auto file = find_file(path, kWhat);
  if (!file.ok()) return file.error();
  return std::unique_ptr<MappedFile>(std::make_unique<SimMappedFile>(tree_.bytes(*file)));
}

Result<bool> SimDisk::exists(const std::string& path) {
  const std::scoped_lock hold(mutex_);
  if (const char* fault = begin()) return failed(path, "cannot look up", fault);
  const Node node = tree_.resolve(path).node;
  return node != kNone && (!path.ends_with('/') || tree_.is_directory(node));
}

Result<std::uint64_t> SimDisk::file_size(const std::string& path) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot tell the size";
  if (const char* fault = begin()) return failed(path, kWhat, fault);
  const auto file = find_file(path, kWhat);
  if (!file.ok()) return file.error();
  return std::uint64_t{tree_.bytes(*file).size()};
}

Result<std::vector<std::string>> SimDisk::list(const std::string& directory) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot list";
  if (const char* fault = begin()) return failed(directory, kWhat, fault);
  const Place place = tree_.resolve(directory);
  if (place.node == kNone) return failed(directory, kWhat, why_missing(place));
  if (!tree_.is_directory(place.node)) return failed(directory, kWhat, kNotDirectory);
  std::vector<std::string> names;
  for (const auto& [name, node] : tree_.names(place.node)) names.push_back(name);
  return names;
}

Result<void> SimDisk::make_directories(const std::string& directory) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot make the directory";
  if (const char* fault = begin()) return failed(directory, kWhat, fault);
  for (std::size_t end = 0; end < directory.size();) {
    end = std::min(directory.find('/', end + 1), directory.size());
    const Place place = tree_.resolve(directory.substr(0, end));
    if (place.node == kNone) {
      CHECK(place.parent != kNone, directory);
      tree_.make_directory(place);
    } else if (!tree_.is_directory(place.node)) {
      return failed(directory, kWhat, kNotDirectory);
    }
  }
  return {};
}

Result<void> SimDisk::rename(const std::string& from, const std::string& to) {
  const std::scoped_lock hold(mutex_);
  const std::string what = "cannot rename to " + to;
  if (const char* fault = begin()) return failed(from, what, fault);
  const Place source = tree_.resolve(from);
  const Place target = tree_.resolve(to);
  if (const char* problem = rename_problem(tree_, source, target)) return failed(from, what, problem);
  if (source.node != target.node) tree_.rename(source, target);
  return {};
}

Result<void> SimDisk::remove_all(const std::string& path) {
  const std::scoped_lock hold(mutex_);
  if (const char* fault = begin()) return failed(path, "cannot remove", fault);
  const Place place = tree_.resolve(path);
  if (place.node == kNone) return {};
  if (place.parent == kNone) return failed(path, "cannot remove", kInvalid);
  tree_.remove(place);
  return {};
}

Result<void> SimDisk::sync_directory(const std::string& directory) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot sync the directory";
  if (const char* fault = begin()) return failed(directory, kWhat, fault);
  const Place place = tree_.resolve(directory);
  if (place.node == kNone) return failed(directory, kWhat, why_missing(place));
  if (!tree_.is_directory(place.node)) return failed(directory, kWhat, kNotDirectory);
  tree_.sync_names(place.node);
  return {};
}

Result<std::uint64_t> SimDisk::free_bytes(const std::string& path) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot tell the free space";
  if (const char* fault = begin()) return failed(path, kWhat, fault);
  const Place place = tree_.resolve(path);
  if (place.node == kNone && place.parent == kNone) return failed(path, kWhat, why_missing(place));
  const std::uint64_t used = tree_.used_bytes();
  return options_.capacity_bytes - std::min(used, options_.capacity_bytes);
}

Result<std::unique_ptr<DirectoryLock>> SimDisk::lock(const std::string& directory) {
  const std::scoped_lock hold(mutex_);
  constexpr const char* kWhat = "cannot lock the directory";
  if (const char* fault = begin()) return failed(directory, kWhat, fault);
  const Place place = tree_.resolve(directory);
  if (place.node == kNone) return failed(directory, kWhat, why_missing(place));
  if (!tree_.is_directory(place.node)) return failed(directory, kWhat, kNotDirectory);
  if (!locked_.insert(place.node).second) {
    return Error{.kind = ErrorKind::kRefused,
                 .where = directory,
                 .what = "the directory is in use by another process",
                 .fix = "wait until it has ended or use another directory"};
  }
  const Place file = tree_.resolve(directory + "/.lock");
  if (file.node == kNone) tree_.make_file(file);
  return std::unique_ptr<DirectoryLock>(std::make_unique<SimDirectoryLock>(*this, place.node));
}

void SimDisk::unlock(Node directory) {
  const std::scoped_lock hold(mutex_);
  locked_.erase(directory);
}

}  // namespace gossamer::host
