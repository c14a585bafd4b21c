// SPDX-License-Identifier: Apache-2.0
#include "commands/run/step_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace gossamer::commands {
namespace {

constexpr std::string_view kSuffix = ".steps";
constexpr std::string_view kFailed = "failed ";

// Takes the next word of `line`, as a number.
template <class T>
bool take_number(std::string_view& line, T& number) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const auto [stop, error] = std::from_chars(line.data(), line.data() + end, number);
  const bool good = error == std::errc() && stop == line.data() + end;
  line.remove_prefix(std::min(end + 1, line.size()));
  return good;
}

}  // namespace

StepReports::StepReports(host::Disk& disk, const std::string& directory, NodeId self) {
  if (!disk.make_directories(directory).ok()) return;
  auto file = disk.open_writable(fmt::format("{}/{}.steps", directory, self.value), host::WriteMode::kAppend);
  if (file.ok()) file_ = *std::move(file);
}

void StepReports::add(const engine::MemberStep& step) {
  tell_failures();
  static_cast<void>(append(fmt::format("{} {} {} {} {} {} {}\n", step.epoch.value, step.step.value, step.rank,
                                       step.members, step.loss, step.sent.steps, step.sent.background)));
}

void StepReports::add_failure(StepNumber checkpoint, const Error& error) {
  std::string message = error.message();
  std::ranges::replace(message, '\n', ' ');
  untold_ += fmt::format("{}{} {}\n", kFailed, checkpoint.value, message);
  tell_failures();
}

void StepReports::tell_failures() {
  if (!untold_.empty() && append(untold_)) untold_.clear();
}

bool StepReports::append(const std::string& lines) {
  if (file_ == nullptr) return false;
  const std::string text = (torn_ ? "\n" : "") + lines;
  torn_ = !file_->append(std::as_bytes(std::span(text.data(), text.size()))).ok();
  return !torn_;
}

std::vector<StepLoss> StepReportReader::read() {
  const auto take = [this](const std::string& file, std::string_view line) { this->take(file, line); };
  tails_.read(take);
  std::vector<StepLoss> steps;
  for (const auto& [step, loss] : std::exchange(whole_, {})) {
    steps.push_back({.step = step, .loss = loss});
    next_ = StepNumber(step.value + 1);
  }
  // A member tells of its steps in order. A step that is not whole now has died with a member.
  std::erase_if(told_, [this](const auto& one) { return one.first.first < next_; });
  return steps;
}

void StepReportReader::take_failure(std::string_view line) {
  StepNumber step;
  if (take_number(line, step.value)) failures_.push_back({.step = step, .message = std::string(line)});
}

void StepReportReader::take(const std::string& file, std::string_view line) {
  if (line.starts_with(kFailed)) return take_failure(line.substr(kFailed.size()));
  Epoch epoch;
  StepNumber step;
  std::size_t rank = 0;
  std::size_t members = 0;
  double loss = 0;
  engine::SentBytes sent;
  const bool good = take_number(line, epoch.value) && take_number(line, step.value) &&
                    take_number(line, rank) && take_number(line, members) && take_number(line, loss) &&
                    take_number(line, sent.steps) && take_number(line, sent.background);
  if (!good || rank >= members) return;
  take_sent(senders_[file], sent);
  if (step < next_) return;
  Told& told = told_[{step, epoch}];
  told.members = members;
  told.loss[rank] = loss;
  if (told.loss.size() < told.members) return;
  double sum = 0;
  for (const auto& [of, share] : told.loss) sum += share;
  whole_[step] = sum;
  told_.erase({step, epoch});
}

// A new life counts from the beginning.
void StepReportReader::take_sent(Sender& sender, const engine::SentBytes& sent) {
  ++sender.steps;
  if (sent.steps < sender.life.steps || sent.background < sender.life.background) {
    sender.before.steps += sender.life.steps;
    sender.before.background += sender.life.background;
  }
  sender.life = sent;
}

StepReportReader::BytesOfStep StepReportReader::bytes_of_step() const {
  BytesOfStep sum;
  double steps = 0;
  for (const auto& [file, sender] : senders_) {
    sum.steps += static_cast<double>(sender.before.steps + sender.life.steps);
    sum.background += static_cast<double>(sender.before.background + sender.life.background);
    steps += static_cast<double>(sender.steps);
  }
  if (steps == 0) return {};
  return {.steps = sum.steps / steps, .background = sum.background / steps};
}

}  // namespace gossamer::commands
