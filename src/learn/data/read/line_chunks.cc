// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/line_chunks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "learn/data/read/byte_source.h"

namespace gossamer::data {
namespace {

std::span<std::byte> room(std::vector<char>& buffer, std::size_t begin, std::size_t size) {
  if (buffer.size() < begin + size) buffer.resize(begin + size);
  return std::as_writable_bytes(std::span(buffer).subspan(begin, size));
}

// The chunks of one round, being read or parsed.
struct ReadAhead {
  std::vector<Chunk> chunks;
  std::size_t used = 0;
};

// Fills the round from the source; at the end or on a failure it stays not full.
void read_ahead(LineChunks& lines, ReadAhead& round, std::optional<Error>& failure) {
  round.used = 0;
  while (round.used < round.chunks.size()) {
    const Result<bool> got = lines.next(round.chunks[round.used]);
    if (!got.ok()) {
      failure = got.error();
      return;
    }
    if (!*got) return;
    ++round.used;
  }
}

}  // namespace

Result<std::string_view> LineChunks::first_line() {
  CHECK(!started_);
  if (!has_first_) {
    const Result<bool> got = cut(first_);
    if (!got.ok()) return got.error();
    has_first_ = *got;
  }
  std::string_view line = first_.text.substr(0, first_.text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void LineChunks::drop_first_line() {
  CHECK(has_first_ && !first_.text.empty());
  first_.text.remove_prefix(first_.text.find('\n') + 1);
  if (first_.text.empty()) has_first_ = false;
}

Result<bool> LineChunks::next(Chunk& chunk) {
  started_ = true;
  if (!has_first_) return cut(chunk);
  std::swap(chunk, first_);
  has_first_ = false;
  return true;
}

Result<bool> LineChunks::cut(Chunk& chunk) {
  chunk.oversized = false;
  chunk.text = {};
  std::size_t size = carry_.size();
  std::size_t searched = 0;
  if (chunk.buffer.size() < size) chunk.buffer.resize(size);
  std::copy(carry_.begin(), carry_.end(), chunk.buffer.begin());
  carry_.clear();
  while (!ended_) {
    const std::size_t wanted = std::max(limits_.chunk_bytes, kByteOrderMark.size());
    const auto got = source_.read(room(chunk.buffer, size, wanted));
    if (!got.ok()) return got.error();
    ended_ = *got < wanted;
    if (bytes_ == 0 && std::string_view(chunk.buffer.data(), *got).starts_with(kByteOrderMark)) {
      std::memmove(chunk.buffer.data(), chunk.buffer.data() + kByteOrderMark.size(),
                   *got - kByteOrderMark.size());
      size -= kByteOrderMark.size();
    }
    size += *got;
    bytes_ += *got;
    const std::string_view fresh(chunk.buffer.data() + searched, size - searched);
    if (const std::size_t last = fresh.rfind('\n'); last != std::string_view::npos) {
      const std::size_t end = searched + last + 1;
      chunk.text = {chunk.buffer.data(), end};
      carry_.assign(chunk.buffer.data() + end, chunk.buffer.data() + size);
      return true;
    }
    if (size > limits_.line_bytes) {
      if (auto done = discard_line(chunk); !done.ok()) return done.error();
      return true;
    }
    searched = size;
  }
  if (size == 0) return false;
  if (chunk.buffer.size() == size) chunk.buffer.resize(size + 1);
  if (chunk.buffer[size - 1] != '\n') chunk.buffer[size++] = '\n';
  chunk.text = {chunk.buffer.data(), size};
  return true;
}

Result<void> LineChunks::discard_line(Chunk& chunk) {
  chunk.oversized = true;
  while (!ended_) {
    const auto into = room(chunk.buffer, 0, std::max<std::size_t>(limits_.chunk_bytes, 4096));
    const auto got = source_.read(into);
    if (!got.ok()) return got.error();
    ended_ = *got < into.size();
    bytes_ += *got;
    const std::string_view fresh(chunk.buffer.data(), *got);
    if (const std::size_t end = fresh.find('\n'); end != std::string_view::npos) {
      carry_.assign(fresh.begin() + static_cast<std::ptrdiff_t>(end) + 1, fresh.end());
      return {};
    }
  }
  return {};
}

std::size_t round_slots(const host::Compute* compute) {
  // There are two rounds, so that one can be drained while the next is parsed. The caller also reads and
  // drains: several chunks a worker and round even that out.
  constexpr std::size_t kChunksPerWorker = 4;
  if (compute == nullptr || compute->workers() == 1) return 2;
  return 2 * kChunksPerWorker * static_cast<std::size_t>(compute->workers());
}

Result<void> parse_in_rounds(LineChunks& lines, host::Compute* compute, const RoundCalls& calls) {
  const std::size_t chunks = round_slots(compute) / 2;
  ReadAhead now{.chunks = std::vector<Chunk>(chunks)};
  ReadAhead next{.chunks = std::vector<Chunk>(chunks)};
  std::size_t first_slot = 0;  // of the round that is parsed: 0 or `chunks`
  std::size_t parsed = 0;      // chunks of the round before, in the other slots, not yet drained
  std::optional<Error> failure;
  Result<void> drained;
  const auto drain = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count && drained.ok(); ++i) drained = calls.drain(i);
  };
  read_ahead(lines, now, failure);
  while (now.used > 0 || parsed > 0) {
    // Timing decides which worker parses a chunk; what comes out of it does not depend on that.
    std::atomic<std::size_t> claimed = 0;
    const auto work = [&](int worker) {
      if (worker == 0) {
        // Slots may point into the chunks that are read into next.
        drain(chunks - first_slot, parsed);
        next.used = 0;
        if (!failure && drained.ok()) read_ahead(lines, next, failure);
      }
      for (std::size_t i = claimed++; i < now.used; i = claimed++) calls.parse(now.chunks[i], first_slot + i);
    };
    if (compute == nullptr) {
      work(0);
    } else {
      compute->run(work);
    }
    parsed = now.used;
    if (calls.sink == SinkRuns::kAlone) drain(first_slot, std::exchange(parsed, 0));
    if (!drained.ok()) return drained;
    if (auto done = calls.after_round(); !done.ok()) return done;
    first_slot = chunks - first_slot;
    std::swap(now, next);
  }
  if (failure) return *failure;
  return {};
}

}  // namespace gossamer::data
