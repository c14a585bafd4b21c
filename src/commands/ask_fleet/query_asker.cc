// SPDX-License-Identifier: Apache-2.0
#include "commands/ask_fleet/query_asker.h"

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
}

void QueryAsker::go_on(Instant now) {
  if (links_ != nullptr) {
    for (sparse_engine::FleetQueries::Sending& each : queries_.take_out()) {
      links_->expect(each.to, sparse_engine::kQueryChannel, each.most_answer_bytes);
      static_cast<void>(links_->send(each.to, each.lane, std::move(each.message), now));
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
