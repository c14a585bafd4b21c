// SPDX-License-Identifier: Apache-2.0
#include "node/fleet/step_reports.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <span>
#include <string_view>

namespace gossamer::node {
namespace {

constexpr std::string_view kSuffix = ".steps";

// The next word of `line`, which loses it, as a number.
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
  auto file =
      disk.open_writable(fmt::format("{}/{}{}", directory, self.value, kSuffix), host::WriteMode::kAppend);
  if (file.ok()) file_ = *std::move(file);
}

void StepReports::add(const engine::FleetStep& step) {
  if (file_ == nullptr) return;
  const std::string line =
      fmt::format("{} {} {} {} {}\n", step.epoch.value, step.step.value, step.rank, step.members, step.loss);
  if (!file_->append(std::as_bytes(std::span(line.data(), line.size()))).ok()) file_.reset();
}

std::vector<StepLoss> StepReportReader::read() {
  const auto names = disk_.list(directory_);
  if (!names.ok()) return {};
  for (const std::string& name : *names) {
    if (!name.ends_with(kSuffix)) continue;
    Source& source = sources_[name];
    if (source.file == nullptr) {
      auto file = disk_.open_sequential(directory_ + "/" + name);
      if (!file.ok()) continue;
      source.file = *std::move(file);
    }
    read_from(source);
  }
  std::vector<StepLoss> steps;
  for (const auto& [step, loss] : std::exchange(whole_, {})) {
    steps.push_back({.step = step, .loss = loss});
    next_ = StepNumber(step.value + 1);
  }
  // A member tells of its steps in order: what is not whole now has died with one.
  std::erase_if(told_, [this](const auto& one) { return one.first.first < next_; });
  return steps;
}

void StepReportReader::read_from(Source& source) {
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const auto got = source.file->read(std::as_writable_bytes(std::span(buffer)));
    if (!got.ok() || *got == 0) return;
    source.rest.append(buffer.data(), *got);
    std::size_t begin = 0;
    for (std::size_t end = source.rest.find('\n'); end != std::string::npos;
         end = source.rest.find('\n', begin)) {
      take(source.rest.substr(begin, end - begin));
      begin = end + 1;
    }
    source.rest.erase(0, begin);
  }
}

void StepReportReader::take(const std::string& line) {
  std::string_view words = line;
  Epoch epoch;
  StepNumber step;
  std::size_t rank = 0;
  std::size_t members = 0;
  double loss = 0;
  const bool good = take_number(words, epoch.value) && take_number(words, step.value) &&
                    take_number(words, rank) && take_number(words, members) && take_number(words, loss);
  if (!good || rank >= members || step < next_) return;
  Told& told = told_[{step, epoch}];
  told.members = members;
  told.loss[rank] = loss;
  if (told.loss.size() < told.members) return;
  double sum = 0;
  for (const auto& [of, share] : told.loss) sum += share;
  whole_[step] = sum;
  told_.erase({step, epoch});
}

}  // namespace gossamer::node
