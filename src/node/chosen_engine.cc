// SPDX-License-Identifier: Apache-2.0
#include "node/chosen_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/printable.h"

namespace gossamer::node {

std::string engine_configuration(std::string_view engine, std::string_view program,
                                 std::string_view configuration) {
  return fmt::format("{} {}\n{}", engine, program, configuration);
}

void ChosenEngine::on(const cluster::ProcessEvent& event, Instant now) {
  if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) return begin(*begun, now);
  if (chosen_ != nullptr) chosen_->on(event, now);
}

void ChosenEngine::begin(const cluster::LifeBegun& event, Instant now) {
  const std::size_t end = std::min(event.configuration.find('\n'), event.configuration.size());
  if (chosen_ == nullptr && !failure_) {
    auto chosen = choose(std::string_view(event.configuration).substr(0, end));
    if (chosen.ok()) {
      chosen_ = *std::move(chosen);
      if (leaving_) chosen_->drain(*leaving_, now);
    } else {
      failure_ = chosen.error();
    }
  }
  if (failure_) {
    if (process_.member() != nullptr) process_.member()->leave(failure_->message(), now);
    return;
  }
  cluster::LifeBegun own = event;
  own.configuration.erase(0, end + 1);
  chosen_->on(own, now);
}

Result<std::unique_ptr<cluster::Engine>> ChosenEngine::choose(std::string_view first_line) const {
  const std::string_view name = first_line.substr(0, first_line.find(' '));
  const auto kind = std::ranges::find(kinds_, name, &Kind::name);
  if (kind != kinds_.end()) return kind->make();
  std::vector<std::string_view> names;
  for (const Kind& known : kinds_) names.push_back(known.name);
  constexpr std::size_t kMostShown = 100;
  return Error{.kind = ErrorKind::kRefused,
               .what = "this node cannot do what the run does",
               .got = fmt::format("'{}'", printable(first_line.substr(0, kMostShown))),
               .expected = fmt::format("one of {}, which {} can do", fmt::join(names, ", "), program_),
               .fix = "run the version of the coordinator here"};
}

void ChosenEngine::tick(Instant now) {
  if (chosen_ != nullptr) chosen_->tick(now);
}

std::optional<Instant> ChosenEngine::next_wakeup() const {
  return chosen_ != nullptr ? chosen_->next_wakeup() : std::nullopt;
}

void ChosenEngine::drain(const std::string& reason, Instant now) {
  leaving_ = reason;
  if (chosen_ != nullptr) return chosen_->drain(reason, now);
  if (process_.member() != nullptr) process_.member()->drain(reason, now);
}

std::optional<Error> ChosenEngine::failure() const {
  return failure_ || chosen_ == nullptr ? failure_ : chosen_->failure();
}

cluster::Engine::Work ChosenEngine::take_work() { return chosen_ != nullptr ? chosen_->take_work() : Work(); }

void ChosenEngine::worked(Instant now) {
  if (chosen_ != nullptr) chosen_->worked(now);
}

std::vector<std::string> ChosenEngine::take_remarks() {
  return chosen_ != nullptr ? chosen_->take_remarks() : std::vector<std::string>();
}

std::vector<CounterSample> ChosenEngine::counters() const {
  return chosen_ != nullptr ? chosen_->counters() : std::vector<CounterSample>();
}

}  // namespace gossamer::node
