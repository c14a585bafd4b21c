// SPDX-License-Identifier: Apache-2.0
#include "commands/ask_fleet/query_asker.h"

#include <algorithm>
#include <utility>

namespace gossamer::commands {

void QueryAsker::on(const net::Arrived& arrived, Instant now) {
  if (links_ != nullptr) links_->consumed(arrived.receipt, now);
  if (arrived.message.channel != sparse_engine::kQueryChannel) return;
  if (const auto good = queries_.on(arrived.from, arrived.message); !good.ok())
    misdeeds_.push_back({.peer = arrived.from, .error = good.error()});
  const QueryDesk::Ready ready{
      .members = queries_.members(), .whole = queries_.whole(), .epoch = queries_.epoch()};
  if (ready != shown_) desk_.shows(ready);
  shown_ = ready;
  go_on(now);
}

void QueryAsker::tick(Instant now) {
  if (const auto asked = desk_.take_question()) {
    number_ = asked->number;
    queries_.ask({.rows = {asked->begin, asked->index, asked->value},
                  .labels = asked->labels,
                  .compared = asked->compared,
                  .neighbours = asked->neighbours});
  }
  go_on(now);
  const bool all = reaches(now);
  if (std::exchange(reaches_, all) != all) desk_.reaches(all);
}

// A node that was killed and has begun again has another link, and does not know the question.
bool QueryAsker::reaches(Instant now) const {
  if (links_ == nullptr || !queries_.whole() || asked_.empty()) return false;
  return std::ranges::all_of(asked_, [&](const auto& one) {
    const net::LinkStatistics facts = links_->statistics(one.first);
    return facts.up && facts.link == one.second && facts.last_heard && now - *facts.last_heard < kSilent;
  });
}

void QueryAsker::go_on(Instant now) {
  if (links_ != nullptr) {
    auto out = queries_.take_out();
    if (!out.empty()) asked_.clear();
    for (sparse_engine::FleetQueries::Sending& each : out) {
      links_->expect(each.to, sparse_engine::kQueryChannel, each.most_answer_bytes);
      const auto ticket = links_->send(each.to, each.lane, std::move(each.message), now);
      asked_[each.to.node] = ticket ? ticket->link : 0;
    }
  }
  if (auto answer = queries_.take_answer())
    desk_.gives(QueryDesk::Answer{.number = number_, .found = *std::move(answer)});
  auto work = queries_.take_work();
  if (!work) return;
  aside_(std::move(work), [this](Instant then) {
    queries_.worked();
    go_on(then);
  });
}

}  // namespace gossamer::commands
