// SPDX-License-Identifier: Apache-2.0
#include "commands/run/line_tails.h"

#include <array>
#include <span>
#include <utility>

namespace gossamer::commands {

void LineTails::read(Take take) {
  const auto names = disk_.list(directory_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(suffix_)) continue;
    Tail& tail = tails_[name];
    if (tail.file == nullptr) {
      auto file = disk_.open_sequential(directory_ + "/" + name);
      if (!file.ok()) continue;
      tail.file = *std::move(file);
    }
    read(name, tail, take);
  }
}

void LineTails::read(const std::string& name, Tail& tail, Take take) {
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const auto got = tail.file->read(std::as_writable_bytes(std::span(buffer)));
    if (!got.ok() || *got == 0) return;
    tail.rest.append(buffer.data(), *got);
    std::size_t begin = 0;
    for (std::size_t end = tail.rest.find('\n'); end != std::string::npos;
         end = tail.rest.find('\n', begin)) {
      take(name, std::string_view(tail.rest).substr(begin, end - begin));
      begin = end + 1;
    }
    tail.rest.erase(0, begin);
  }
}

}  // namespace gossamer::commands
