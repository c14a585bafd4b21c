// SPDX-License-Identifier: Apache-2.0
#include "commands/ask_fleet/query_desk.h"

#include <fmt/format.h>

#include <utility>

namespace gossamer::commands {
namespace {

// How late `stop`, or the end, may be noticed.
constexpr Duration kTakeEvery{50'000'000};

}  // namespace

AskedBlock asked_block(std::uint64_t number, const sparse_engine::FleetQueries::Block& block) {
  const data::SparseRows& rows = block.rows;
  return {.number = number,
          .begin = {rows.begin.begin(), rows.begin.end()},
          .index = {rows.index.begin(), rows.index.end()},
          .value = {rows.value.begin(), rows.value.end()},
          .labels = block.labels,
          .compared = {block.compared.begin(), block.compared.end()},
          .neighbours = block.neighbours};
}

void QueryDesk::hear(Said said) {
  if (auto* const led = std::get_if<Led>(&said)) led_ = std::move(*led);
  if (const auto* const ready = std::get_if<Ready>(&said)) ready_ = *ready;
  if (const auto* const reach = std::get_if<Reach>(&said)) reaches_ = reach->all;
  if (std::holds_alternative<Answer>(said) || (std::holds_alternative<Ready>(said) && ready_.whole))
    away_ = false;
  // Blocks are asked one after another, so the answer with the highest number is that of the last one.
  if (auto* const answer = std::get_if<Answer>(&said);
      answer != nullptr && (!answer_ || answer->number > answer_->number))
    answer_ = std::move(*answer);
  if (auto* const error = std::get_if<Error>(&said); error != nullptr && !failure_)
    failure_ = std::move(*error);
  if (std::holds_alternative<Closed>(said)) closed_ = true;
}

Result<void> QueryDesk::wait(const host::Clock& clock, const Patience& patience,
                             const std::function<bool()>& there) {
  const Instant until = clock.now() + patience.time;
  std::optional<Instant> stopped;
  Duration look{};  // the first look does not wait
  for (;;) {
    for (Said& said : said_.wait(look)) hear(std::move(said));
    look = kTakeEvery;
    if (there()) return {};
    if (auto why = end_of_lead()) return *std::move(why);
    const bool told = patience.stop && patience.stop();
    // Nodes that are there may need longer for an answer than a user who stops need wait for others.
    if (reaches_ && patience.after_stop > Duration()) {
      stopped.reset();
    } else if (told && !stopped) {
      stopped = clock.now();
    }
    if (stopped && clock.now() - *stopped >= patience.after_stop)
      return not_there("stopped while they were waited for");
    if (clock.now() >= until)
      return not_there(
          fmt::format("{} of them ready after {:.0f} s", ready_.members, patience.time.seconds()));
  }
}

std::optional<Error> QueryDesk::end_of_lead() const {
  if (failure_) return failure_;
  return closed_ ? std::optional(not_there("they have ended")) : std::nullopt;
}

std::optional<Error> QueryDesk::ended() {
  for (Said& said : said_.wait({})) hear(std::move(said));
  return end_of_lead();
}

Error QueryDesk::not_there(std::string got) const {
  return {.kind = ErrorKind::kFailed,
          .where = "nodes",
          .what = "the nodes that have the model are not all there",
          .got = std::move(got),
          .expected = "all parts of the model in the memory of nodes that can be reached",
          .fix = "ask again; if it stays so, look into what the nodes say"};
}

Result<QueryDesk::Led> QueryDesk::wait_until_led(const host::Clock& clock, const Patience& patience) {
  auto waited = wait(clock, patience, [this] { return led_.has_value(); });
  if (!waited.ok()) return waited.error();
  return *led_;
}

Result<void> QueryDesk::wait_until_whole(const host::Clock& clock, const Patience& patience) {
  return wait(clock, patience, [this] { return ready_.whole; });
}

Result<QueryDesk::Found> QueryDesk::ask(AskedBlock block, const host::Clock& clock,
                                        const Patience& patience) {
  const std::uint64_t number = block.number;
  for (Said& said : said_.wait({})) hear(std::move(said));
  // The question before stays under way: its answer says that they are back.
  if (away_ && !failure_) return not_there("they have not answered for a while");
  asked_.push(std::move(block));
  led_->wake([] {});
  // An answer to an earlier block, which came too late, is not looked at.
  auto waited = wait(clock, patience, [&] { return answer_ && answer_->number == number; });
  away_ = !waited.ok();
  if (away_) return waited.error();
  return std::exchange(answer_, std::nullopt)->found;
}

void QueryDesk::take_asked(Duration patience) {
  for (Asked& asked : asked_.wait(patience)) {
    if (auto* const block = std::get_if<AskedBlock>(&asked)) question_ = std::move(*block);
    if (std::holds_alternative<End>(asked)) ending_ = true;
  }
}

std::optional<AskedBlock> QueryDesk::take_question() {
  take_asked(Duration());
  return std::exchange(question_, std::nullopt);
}

bool QueryDesk::ending() {
  take_asked(Duration());
  return ending_;
}

void QueryDesk::wait_for_end() {
  while (!ending_) take_asked(kTakeEvery);
}

}  // namespace gossamer::commands
