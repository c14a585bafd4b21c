// SPDX-License-Identifier: Apache-2.0
//
// DurableOutbox: nothing leaves before what it rests on is durable. Changes of the store and actions (sending
// an answer) are put in as they are decided; an action runs once every change before it is in the store.
// Changes that come while a commit is under way go together into the next one.
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
  // What comes after also waits for proof that this process still leads, given after this call.
  void guard();
  // Runs now if nothing is to be waited for.
  void then(Action action);

  // What the store should carry out now: nothing while a commit is under way or when there is nothing to do.
  // Empty changes: the guard alone.
  [[nodiscard]] std::optional<std::vector<host::Change>> next_commit();
  // The batch is in the store: runs what waited for it.
  void committed();
  // It may be there or not: the same changes come again, with others after them.
  void failed();

  [[nodiscard]] bool waiting() const { return !queue_.empty(); }

 private:
  struct Guard {};
  using Item = std::variant<host::Change, Guard, Action>;

  std::deque<Item> queue_;
  std::size_t under_way_ = 0;  // items at the front whose commit was begun; never begins with an action
  Order order_;
};

}  // namespace gossamer::cluster
