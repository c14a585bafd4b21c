// SPDX-License-Identifier: Apache-2.0
#include "host/posix/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "host/api/files.h"
#include "host/system/descriptor.h"

namespace gossamer::host {
namespace {

constexpr unsigned kOwnersFile = S_IRUSR | S_IWUSR;
constexpr unsigned kOwnersDirectory = S_IRWXU;

class PosixSequentialFile final : public SequentialFile {
 public:
  PosixSequentialFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const ssize_t got = ::read(fd_.get(), out.data() + filled, out.size() - filled);
      if (got == 0) break;
      if (got > 0) {
        filled += static_cast<std::size_t>(got);
      } else if (errno != EINTR) {
        return system_error(path_, "cannot read", errno);
      }
    }
    return filled;
  }

 private:
  std::string path_;
  Descriptor fd_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    CHECK(fd_.get() >= 0, path_);
    start_writing(bytes.size());
    while (!bytes.empty()) {
      const ssize_t put = ::write(fd_.get(), bytes.data(), bytes.size());
      if (put >= 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(put));
      } else if (errno != EINTR) {
        return system_error(path_, "cannot write", errno);
      }
    }
    return {};
  }

  Result<void> sync() override {
    CHECK(fd_.get() >= 0, path_);
    while (::fsync(fd_.get()) != 0) {
      if (errno != EINTR) return system_error(path_, "cannot sync", errno);
    }
    return {};
  }

  Result<void> close() override {
    if (const int error = fd_.close(); error != 0) return system_error(path_, "cannot close", error);
    return {};
  }

 private:
  // Tells the disk to begin with what has gathered, while more is computed; else it would begin at sync(),
  // with everything. Advice only: pipes refuse it.
  void start_writing(std::size_t more) {
    constexpr std::size_t kEnough = std::size_t{32} << 20;
    if (gathered_ >= kEnough) {
      static_cast<void>(::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
      gathered_ = 0;
    }
    gathered_ += more;
  }

  std::string path_;
  Descriptor fd_;
  std::size_t gathered_ = 0;  // bytes since the disk was last told to begin
};

class PosixMappedFile final : public MappedFile {
 public:
  PosixMappedFile(void* memory, std::size_t size) : memory_(memory), size_(size) {}
  ~PosixMappedFile() override {
    if (size_ != 0) CHECK(::munmap(memory_, size_) == 0, size_);
  }

  [[nodiscard]] std::span<const std::byte> bytes() const override {
    return {static_cast<const std::byte*>(memory_), size_};
  }

 private:
  void* memory_;
  std::size_t size_;
};

class PosixDirectoryLock final : public DirectoryLock {
 public:
  explicit PosixDirectoryLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  Descriptor fd_;
};

Result<struct stat> status(const std::string& path, std::string_view what, const Descriptor& fd) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return system_error(path, what, errno);
  return info;
}

// Bytes of a regular file; anything else is an error.
Result<std::uint64_t> regular_size(const std::string& path, std::string_view what, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return system_error(path, what, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    return Error{.kind = ErrorKind::kFailed,
                 .where = path,
                 .what = std::string(what) + ": Not a regular file",
                 .expected = "a regular file, which has a size"};
  }
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace

Result<std::unique_ptr<SequentialFile>> PosixDisk::open_sequential(const std::string& path) {
  constexpr std::string_view kWhat = "cannot open for reading";
  // Opening the name anew would fail for a socket and rewind a file that is partly read.
  Result<Descriptor> fd = path == "/dev/stdin" ? Descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0))
                                               : open_descriptor(path, kWhat, O_RDONLY);
  if (!fd.ok()) return fd.error();
  if (fd->get() < 0) return system_error(path, kWhat, errno);
  const auto info = status(path, kWhat, *fd);
  if (!info.ok()) return info.error();
  if (S_ISDIR(info->st_mode)) return system_error(path, kWhat, EISDIR);
  // Advice only; pipes refuse it.
  static_cast<void>(::posix_fadvise(fd->get(), 0, 0, POSIX_FADV_SEQUENTIAL));
  return std::unique_ptr<SequentialFile>(std::make_unique<PosixSequentialFile>(path, std::move(*fd)));
}

Result<std::unique_ptr<WritableFile>> PosixDisk::open_writable(const std::string& path, WriteMode mode) {
  constexpr std::string_view kWhat = "cannot open for writing";
  const bool own = mode == WriteMode::kPrivate;
  int flags = O_WRONLY | O_CREAT | (mode == WriteMode::kAppend ? O_APPEND : O_TRUNC);
  if (own || (mode == WriteMode::kTruncate && path.ends_with(".tmp"))) {
    // What a crash left goes first, and so does what another user of this machine has put there.
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error(path, kWhat, errno);
    flags |= O_EXCL | O_NOFOLLOW;
  }
  auto fd = open_descriptor(path, kWhat, flags, own ? kOwnersFile : 0666);
  if (!fd.ok()) return fd.error();
  return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(path, std::move(*fd)));
}

Result<std::unique_ptr<MappedFile>> PosixDisk::map(const std::string& path) {
  constexpr std::string_view kWhat = "cannot map";
  auto fd = open_descriptor(path, kWhat, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) return fd.error();
  const auto info = status(path, kWhat, *fd);
  if (!info.ok()) return info.error();
  const auto size = regular_size(path, kWhat, *info);
  if (!size.ok()) return size.error();
  if (*size == 0) return std::unique_ptr<MappedFile>(std::make_unique<PosixMappedFile>(nullptr, 0));
  void* memory = ::mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, fd->get(), 0);
  if (memory == MAP_FAILED) return system_error(path, kWhat, errno);
  return std::unique_ptr<MappedFile>(std::make_unique<PosixMappedFile>(memory, *size));
}

Result<bool> PosixDisk::exists(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return system_error(path, "cannot look up", errno);
}

Result<std::uint64_t> PosixDisk::file_size(const std::string& path) {
  constexpr std::string_view kWhat = "cannot tell the size";
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return system_error(path, kWhat, errno);
  return regular_size(path, kWhat, info);
}

Result<std::vector<std::string>> PosixDisk::list(const std::string& directory) {
  constexpr std::string_view kWhat = "cannot list";
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  std::vector<std::string> names;
  while (!error && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) return system_error(directory, kWhat, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> PosixDisk::make_directories(const std::string& directory) {
  constexpr std::string_view kWhat = "cannot make the directory";
  for (std::size_t end = directory.find('/', 1);; end = directory.find('/', end + 1)) {
    const std::string part = directory.substr(0, end);
    const int error = ::mkdir(part.c_str(), kOwnersDirectory) == 0 ? 0 : errno;
    std::error_code ignored;
    // A directory that is there may be one in which this user can make nothing.
    if (error != 0 && !std::filesystem::is_directory(part, ignored)) {
      return system_error(directory, kWhat, error == EEXIST ? ENOTDIR : error);
    }
    if (end == std::string::npos) return {};
  }
}

Result<void> PosixDisk::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return system_error(from, "cannot rename to " + to, errno);
}

Result<void> PosixDisk::remove_all(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  // Below a file there is nothing: the path is missing, as for exists().
  if (error && error.value() != ENOTDIR) return system_error(path, "cannot remove", error.value());
  return {};
}

Result<void> PosixDisk::sync_directory(const std::string& directory) {
  constexpr std::string_view kWhat = "cannot sync the directory";
  auto fd = open_descriptor(directory, kWhat, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return fd.error();
  while (::fsync(fd->get()) != 0) {
    if (errno != EINTR) return system_error(directory, kWhat, errno);
  }
  return {};
}

Result<std::uint64_t> PosixDisk::free_bytes(const std::string& path) {
  struct statvfs info{};
  int failed = ::statvfs(path.c_str(), &info);
  if (failed != 0 && errno == ENOENT) failed = ::statvfs(parent(path).c_str(), &info);
  if (failed != 0) return system_error(path, "cannot tell the free space", errno);
  // Some file systems count nothing; 0 bytes free would be a lie.
  if (info.f_blocks == 0) return system_error(path, "cannot tell the free space", ENOTSUP);
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

Result<std::unique_ptr<DirectoryLock>> PosixDisk::lock(const std::string& directory) {
  constexpr std::string_view kWhat = "cannot lock the directory";
  auto fd = open_descriptor(directory + "/.lock", kWhat, O_RDWR | O_CREAT | O_NOFOLLOW, kOwnersFile);
  if (!fd.ok()) {
    Error error = fd.error();
    error.where = directory;
    return error;
  }
  // A user that can open the file can lock it. The file of an older version was open to all.
  static_cast<void>(::fchmod(fd->get(), kOwnersFile));
  while (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Error{.kind = ErrorKind::kRefused,
                   .where = directory,
                   .what = "the directory is in use by another process",
                   .fix = "wait until it has ended or use another directory"};
    }
    if (errno != EINTR) return system_error(directory, kWhat, errno);
  }
  return std::unique_ptr<DirectoryLock>(std::make_unique<PosixDirectoryLock>(std::move(*fd)));
}

}  // namespace gossamer::host
