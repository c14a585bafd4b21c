// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace gossamer::data {
namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;

// The packed file with a window over its next bytes.
class Input {
 public:
  Input(std::unique_ptr<host::SequentialFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)), buffer_(kInputBytes) {}

  [[nodiscard]] std::span<const std::byte> window() const {
    return std::span(buffer_).subspan(begin_, end_ - begin_);
  }
  void take(std::size_t bytes) {
    begin_ += bytes;
    position_ += bytes;
  }
  // Reads more when the window is empty; it stays empty only at the end of the file.
  [[nodiscard]] Result<void> fill() {
    if (begin_ < end_) return {};
    auto got = file_->read(buffer_);
    if (!got.ok()) return got.error();
    begin_ = 0;
    end_ = *got;
    return {};
  }
  [[nodiscard]] Result<std::size_t> read_past_window(std::span<std::byte> out) {
    auto got = file_->read(out);
    if (got.ok()) position_ += *got;
    return got;
  }
  // The position of the window's first byte in the packed file.
  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] Error damaged(const char* format, std::string_view detail) const {
    return Error{.kind = ErrorKind::kBadData,
                 .where = name_,
                 .what = fmt::format("cannot unpack the {} archive", format),
                 .got = fmt::format("{} near byte {}", detail, position_),
                 .expected = fmt::format("intact {} data", format),
                 .fix = "get the file again, or unpack what can be saved and use that"};
  }
  [[nodiscard]] Error truncated(const char* format) const {
    return Error{.kind = ErrorKind::kBadData,
                 .where = name_,
                 .what = fmt::format("cannot unpack the {} archive", format),
                 .got = fmt::format("the end of the file at byte {}", position_),
                 .expected = fmt::format("more {} data: the file was cut off", format),
                 .fix = "get the file again, or unpack what can be saved and use that"};
  }

 private:
  std::unique_ptr<host::SequentialFile> file_;
  std::string name_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t position_ = 0;
};

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(Input input) : input_(std::move(input)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    const auto window = input_.window();
    const std::size_t first = std::min(window.size(), out.size());
    std::copy_n(window.begin(), first, out.begin());
    input_.take(first);
    if (first == out.size()) return first;
    auto rest = input_.read_past_window(out.subspan(first));
    if (!rest.ok()) return rest.error();
    return first + *rest;
  }
  [[nodiscard]] const std::string& name() const override { return input_.name(); }

 private:
  Input input_;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(Input input) : input_(std::move(input)) {
    constexpr int kGzipOnly = 16;
    CHECK(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK);
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  Result<std::size_t> read(std::span<std::byte> out) override {
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      if (auto filled = input_.fill(); !filled.ok()) return filled.error();
      const auto window = input_.window();
      if (window.empty() && in_member_) return input_.truncated("gzip");
      if (!in_member_) {
        if (auto begun = begin_member(window); !begun.ok()) return begun.error();
        if (!in_member_) continue;
      }
      auto made = inflate_some(window, out.subspan(done));
      if (!made.ok()) return made.error();
      done += *made;
    }
    return done;
  }
  [[nodiscard]] const std::string& name() const override { return input_.name(); }
  [[nodiscard]] Packing packing() const override { return Packing::kGzip; }

 private:
  // Between members: another one, zero padding up to the end (as tar and tapes leave it), or the end.
  Result<void> begin_member(std::span<const std::byte> window) {
    if (window.empty()) {
      ended_ = true;
      return {};
    }
    if (window.front() == std::byte{0}) {
      const auto data =
          std::find_if(window.begin(), window.end(), [](std::byte b) { return b != std::byte{0}; });
      input_.take(static_cast<std::size_t>(data - window.begin()));
      padding_ = true;
      return {};
    }
    if (padding_ || window.front() != std::byte{0x1F}) {
      return input_.damaged("gzip", "bytes behind the end of the archive that are no archive");
    }
    inflateReset(&stream_);
    in_member_ = true;
    return {};
  }

  Result<std::size_t> inflate_some(std::span<const std::byte> in, std::span<std::byte> out) {
    const std::size_t room = std::min<std::size_t>(out.size(), std::size_t{1} << 30);
    // zlib's interface is not const-correct; it does not write to its input.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    input_.take(in.size() - stream_.avail_in);
    if (status == Z_STREAM_END) {
      in_member_ = false;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      return input_.damaged("gzip", stream_.msg != nullptr ? stream_.msg : "damaged data");
    }
    return room - stream_.avail_out;
  }

  Input input_;
  z_stream stream_ = {};
  bool in_member_ = true;
  bool padding_ = false;
  bool ended_ = false;
};

struct FreeZstd {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(Input input) : input_(std::move(input)), stream_(ZSTD_createDStream()) {
    CHECK(stream_ != nullptr);
  }

  Result<std::size_t> read(std::span<std::byte> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos < to.size) {
      if (auto filled = input_.fill(); !filled.ok()) return filled.error();
      const auto window = input_.window();
      if (window.empty() && !in_frame_) break;
      const std::size_t before = to.pos;
      ZSTD_inBuffer from{window.data(), window.size(), 0};
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &to, &from);
      input_.take(from.pos);
      if (ZSTD_isError(status) != 0) return input_.damaged("zstd", ZSTD_getErrorName(status));
      in_frame_ = status != 0;
      // Without input, what was still held back comes first; then the file is short.
      if (window.empty() && in_frame_ && to.pos == before) return input_.truncated("zstd");
    }
    return to.pos;
  }
  [[nodiscard]] const std::string& name() const override { return input_.name(); }
  [[nodiscard]] Packing packing() const override { return Packing::kZstd; }

 private:
  Input input_;
  std::unique_ptr<ZSTD_DStream, FreeZstd> stream_;
  bool in_frame_ = true;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::string_view content) : name_(std::move(name)), content_(content) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    const std::size_t bytes = std::min(out.size(), content_.size());
    if (bytes > 0) std::memcpy(out.data(), content_.data(), bytes);
    content_.remove_prefix(bytes);
    return bytes;
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  std::string name_;
  std::string_view content_;
};

// A source whose first bytes were read before.
class BegunSource final : public ByteSource {
 public:
  BegunSource(std::string begin, std::unique_ptr<ByteSource> rest)
      : begin_(std::move(begin)), rest_(std::move(rest)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    const std::size_t first = std::min(out.size(), begin_.size() - at_);
    if (first > 0) std::memcpy(out.data(), begin_.data() + at_, first);
    at_ += first;
    if (first == out.size()) return first;
    auto more = rest_->read(out.subspan(first));
    if (!more.ok()) return more.error();
    return first + *more;
  }
  [[nodiscard]] const std::string& name() const override { return rest_->name(); }
  [[nodiscard]] Packing packing() const override { return rest_->packing(); }

 private:
  std::string begin_;
  std::size_t at_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// A zstd frame, or a skippable frame (0x184D2A50..5F) as parallel packers put in front.
bool is_zstd(std::span<const std::byte> bytes) {
  if (starts_with(bytes, "\x28\xB5\x2F\xFD")) return true;
  return bytes.size() >= 4 && (bytes[0] & std::byte{0xF0}) == std::byte{0x50} &&
         starts_with(bytes.subspan(1), "\x2A\x4D\x18");
}

// The name of an archive format that we know but do not read, or nothing.
std::string_view foreign_archive(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  if (starts_with(bytes, "\xFD\x37zXZ\0"sv)) return "xz";
  if (starts_with(bytes, "BZh") &&
      starts_with(bytes.subspan(std::min<std::size_t>(4, bytes.size())), "1AY&SY")) {
    return "bzip2";
  }
  if (starts_with(bytes, "PK\3\4")) return "zip";
  return {};
}

}  // namespace

Result<std::unique_ptr<ByteSource>> unpack(std::unique_ptr<host::SequentialFile> file, std::string name) {
  using Source = std::unique_ptr<ByteSource>;
  Input input(std::move(file), std::move(name));
  if (auto filled = input.fill(); !filled.ok()) return filled.error();
  const auto start = input.window();
  if (starts_with(start, "\x1F\x8B")) return Source(std::make_unique<GzipSource>(std::move(input)));
  if (is_zstd(start)) return Source(std::make_unique<ZstdSource>(std::move(input)));
  if (const std::string_view format = foreign_archive(start); !format.empty()) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = input.name(),
                 .what = "cannot read this kind of archive",
                 .got = fmt::format("{} data", format),
                 .expected = "plain, gzip or zstd",
                 .fix = "unpack it first"};
  }
  return Source(std::make_unique<PlainSource>(std::move(input)));
}

Result<std::unique_ptr<ByteSource>> open_bytes(host::Disk& disk, const std::string& path) {
  const bool standard_input = path == "-" || path == "/dev/stdin";
  auto file = disk.open_sequential(standard_input ? "/dev/stdin" : path);
  if (!file.ok()) return file.error();
  return unpack(*std::move(file), standard_input ? "stdin" : path);
}

Result<std::unique_ptr<ByteSource>> look_first(std::unique_ptr<ByteSource> source,
                                               FunctionRef<Result<void>(std::string_view begin)> look) {
  std::string begin(std::size_t{64} << 10, '\0');
  const auto got = source->read(std::as_writable_bytes(std::span(begin)));
  if (!got.ok()) return got.error();
  begin.resize(*got);
  if (auto done = look(begin); !done.ok()) return done.error();
  return std::unique_ptr<ByteSource>(std::make_unique<BegunSource>(std::move(begin), std::move(source)));
}

Result<std::string> read_all(ByteSource& source, std::size_t limit_bytes) {
  constexpr std::size_t kFirst = std::size_t{64} << 10;
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    if (before > limit_bytes) {
      return Error{.kind = ErrorKind::kBadData,
                   .where = source.name(),
                   .what = "the file is too large to be read whole",
                   .got = fmt::format("more than {} bytes", limit_bytes),
                   .expected = fmt::format("at most {} bytes", limit_bytes)};
    }
    text.resize(before + std::max(kFirst, before));
    const std::span<char> room(text.data() + before, text.size() - before);
    auto got = source.read(std::as_writable_bytes(room));
    if (!got.ok()) return got.error();
    text.resize(before + *got);
    if (*got == 0) return text;
  }
}

std::unique_ptr<ByteSource> memory_source(std::string name, std::string_view content) {
  return std::make_unique<MemorySource>(std::move(name), content);
}

}  // namespace gossamer::data
