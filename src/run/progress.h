// SPDX-License-Identifier: Apache-2.0
//
// Progress shows how far a long piece of work is. On a terminal it is a bar with rate and time left,
// drawn again at most ten times a second. Elsewhere it is a line at the start and then one every ten
// seconds. With kQuiet it is silent.
//
//   train [########............]  41 %  34 s left  step 1230/3000  52 step/s  loss 3.214  epoch 4.9
//
// Thread rule: one thread. The clock and console must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "host/api/clock.h"
#include "run/console.h"

namespace gossamer::run {

enum class Verbosity { kNormal, kQuiet };

struct ProgressState {
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known
  std::string_view unit;    // "step", "MB"
  std::string_view detail;  // "loss 3.214  epoch 4.9"
};

class Progress {
 public:
  Progress(Console& console, const host::Clock& clock, std::string title, Verbosity verbosity);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Ends the line of a bar.
  ~Progress();

  // True when update() would print now. The caller need not make `detail` otherwise.
  [[nodiscard]] bool due() const;
  void update(const ProgressState& state);
  // Draws the last state that a bar was told if it is not on the screen yet, and ends the bar's line. Later
  // updates print nothing.
  void finish();

 private:
  // A state that was told between two drawings of a bar.
  struct Untold {
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::string unit;
    std::string detail;
  };
  [[nodiscard]] std::string render(const ProgressState& state, Instant now) const;
  void print(std::string line);

  Console& console_;
  const host::Clock& clock_;
  std::string title_;
  Verbosity verbosity_;
  Instant start_;
  Instant last_;
  std::uint64_t first_done_ = 0;
  std::size_t drawn_ = 0;  // characters of the bar now on the screen
  std::optional<Untold> untold_;
  bool started_ = false;
  bool finished_ = false;
};

// "34 s", "12 min 5 s", "3 h 20 min", "2 days 4 h".
[[nodiscard]] std::string human_duration(double seconds);
// "1,234,567".
[[nodiscard]] std::string human_count(std::uint64_t count);
// The count with its noun, which is given in the singular: "1 query", "2,000 queries", "0 records".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace gossamer::run
