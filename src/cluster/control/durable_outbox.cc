// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/durable_outbox.h"

#include <utility>

#include "base/check.h"

namespace gossamer::cluster {

void DurableOutbox::put(host::Change change) { queue_.emplace_back(std::move(change)); }

void DurableOutbox::guard() { queue_.emplace_back(Guard{}); }

void DurableOutbox::then(Action action) {
  if (queue_.empty() || order_ == Order::kBroken) {
    action();
  } else {
    queue_.emplace_back(std::move(action));
  }
}

std::optional<std::vector<host::Change>> DurableOutbox::next_commit() {
  if (under_way_ != 0 || queue_.empty()) return std::nullopt;
  std::vector<host::Change> changes;
  std::size_t bytes = 0;
  for (const Item& item : queue_) {
    if (const auto* const change = std::get_if<host::Change>(&item)) {
      const std::size_t size = change->key.size() + (change->value ? change->value->size() : 0);
      if (changes.size() == host::kMaxChanges || bytes + size > host::kMaxCommitBytes) break;
      bytes += size;
      changes.push_back(*change);
    }
    ++under_way_;
  }
  return changes;
}

void DurableOutbox::committed() {
  CHECK(under_way_ > 0);
  // An action may put more into the queue. That goes to the back and does not belong to this batch.
  for (; under_way_ > 0; --under_way_) {
    Item item = std::move(queue_.front());
    queue_.pop_front();
    if (auto* const action = std::get_if<Action>(&item)) (*action)();
  }
  while (!queue_.empty() && std::holds_alternative<Action>(queue_.front())) {
    const Item item = std::move(queue_.front());
    queue_.pop_front();
    std::get<Action>(item)();
  }
}

void DurableOutbox::failed() {
  CHECK(under_way_ > 0);
  under_way_ = 0;
}

}  // namespace gossamer::cluster
