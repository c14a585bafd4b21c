// SPDX-License-Identifier: Apache-2.0
//
// DurableOutbox: no action runs before the changes on which it rests are durable. Changes of the store and
// actions (sending an answer) are put in as they are decided. An action runs once every change before it is
// in the store. Changes that come while a commit is under way go together into the next one.
//
//   outbox.put({"epoch", "7"});
//   outbox.then([&] { links.send(...); });
//   if (auto batch = outbox.next_commit()) hand_to_store(*batch);   // later: committed() or failed()
//
// Thread rule: one owner.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "host/api/store.h"

namespace gossamer::cluster {

class DurableOutbox {
 public:
  using Action = std::function<void()>;
  enum class Order { kKept, kBroken };  // kBroken: actions do not wait, a defect for simulations

  explicit DurableOutbox(Order order = Order::kKept) : order_(order) {}

  void put(host::Change change);
  // Everything put in after this call also waits for proof, given after it, that this process still leads.
  void guard();
  // Runs the action now if there is nothing to wait for.
  void then(Action action);

  // The changes that the store should carry out now. Nothing while a commit is under way or when there is
  // nothing to do. Empty changes: the guard alone.
  [[nodiscard]] std::optional<std::vector<host::Change>> next_commit();
  // The batch is in the store: runs the actions that waited for it.
  void committed();
  // The batch may be in the store or not. The same changes come again, with others after them.
  void failed();

  [[nodiscard]] bool waiting() const { return !queue_.empty(); }

 private:
  struct Guard {};
  using Item = std::variant<host::Change, Guard, Action>;

  std::deque<Item> queue_;
  std::size_t under_way_ = 0;  // items at the front, from a change or guard on, whose commit was begun
  Order order_;
};

}  // namespace gossamer::cluster
