// SPDX-License-Identifier: Apache-2.0
#include "run/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gossamer::run {
namespace {

constexpr Duration kRedraw = from_milliseconds(100);
constexpr Duration kLine = from_seconds(10);
constexpr int kBarWidth = 20;

// "41.3k", "812", "1.2M": three figures are enough for a rate.
std::string human_rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.1f}M", per_second / 1e6);
  if (per_second >= 1e4) return fmt::format("{:.1f}k", per_second / 1e3);
  return fmt::format("{:.{}f}", per_second, per_second < 9.95 ? 1 : 0);
}

}  // namespace

Progress::Progress(Console& console, const host::Clock& clock, std::string title, Verbosity verbosity)
    : console_(console),
      clock_(clock),
      title_(std::move(title)),
      verbosity_(verbosity),
      start_(clock.now()),
      last_(start_) {}

Progress::~Progress() { finish(); }

bool Progress::due() const {
  if (verbosity_ == Verbosity::kQuiet || finished_) return false;
  if (!started_) return true;
  return clock_.now() - last_ >= (console_.terminal() ? kRedraw : kLine);
}

void Progress::update(const ProgressState& state) {
  if (!due()) {
    const bool later = drawn_ > 0 && !finished_;
    if (later) untold_ = {state.done, state.total, std::string(state.unit), std::string(state.detail)};
    return;
  }
  untold_.reset();
  const Instant now = clock_.now();
  if (!started_) {
    first_done_ = state.done;
    start_ = now;
  }
  started_ = true;
  last_ = now;
  print(render(state, now));
}

void Progress::finish() {
  if (!finished_ && drawn_ > 0) {
    if (untold_) {
      const auto& [done, total, unit, detail] = *untold_;
      print(render({.done = done, .total = total, .unit = unit, .detail = detail}, clock_.now()));
    }
    console_.write("\n");
  }
  finished_ = true;
}

// The most important parts come first, because a narrow terminal cuts the line off at its end.
std::string Progress::render(const ProgressState& state, Instant now) const {
  const double elapsed = (now - start_).seconds();
  const std::uint64_t done = state.done - std::min(state.done, first_done_);
  const double rate = elapsed > 0 ? static_cast<double>(done) / elapsed : 0;
  std::string line = title_;
  if (state.total > 0) {
    const double share = std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
    if (console_.terminal()) {
      const auto full = static_cast<std::size_t>(share * kBarWidth);
      line += fmt::format(" [{}{}]", std::string(full, '#'), std::string(kBarWidth - full, '.'));
    }
    line += fmt::format(" {:3.0f} %", std::floor(share * 100));
    if (rate > 0 && state.total > state.done) {
      line += fmt::format("  {} left", human_duration(static_cast<double>(state.total - state.done) / rate));
    }
    line += fmt::format("  {} {}/{}", state.unit, state.done, state.total);
  } else {
    line += fmt::format(" {} {}", state.done, state.unit);
  }
  if (rate > 0) line += fmt::format("  {} {}/s", human_rate(rate), state.unit);
  if (!state.detail.empty()) line += fmt::format("  {}", state.detail);
  return line;
}

void Progress::print(std::string line) {
  if (!console_.terminal()) {
    console_.write(line + "\n");
    return;
  }
  // A bar wider than the screen would wrap and could not be drawn over.
  const auto columns = static_cast<std::size_t>(std::max(console_.columns(), 20));
  if (line.size() >= columns) line.resize(columns - 1);
  const std::size_t length = line.size();
  if (length < drawn_) line.append(drawn_ - length, ' ');
  drawn_ = length;
  console_.write("\r" + line);
}

std::string human_duration(double seconds) {
  const auto s = static_cast<std::uint64_t>(std::max(0.0, std::round(seconds)));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
  return fmt::format("{} {} h", counted(static_cast<std::uint64_t>(s / 86400), "day"), s % 86400 / 3600);
}

std::string human_count(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  if (count == 1) return fmt::format("1 {}", noun);
  const bool consonant_y =
      noun.ends_with('y') && !noun.ends_with("ay") && !noun.ends_with("ey") && !noun.ends_with("oy");
  if (consonant_y) return fmt::format("{} {}ies", human_count(count), noun.substr(0, noun.size() - 1));
  return fmt::format("{} {}s", human_count(count), noun);
}

}  // namespace gossamer::run
