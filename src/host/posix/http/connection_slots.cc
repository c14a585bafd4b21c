// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/connection_slots.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "host/posix/blocked_signals.h"

namespace gossamer::host {

void ConnectionSlots::add(int socket, Talk talk) {
  std::unique_lock lock(mutex_);
  while (open_.size() >= most_ + kSpareSlots) {
    shut_longest();
    changed_.wait(lock);
  }
  if (threads_.size() <= open_.size()) {
    const BlockedSignals blocked;
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The system gives no more threads: those that are there take one connection after another.
      while (!threads_.empty() && open_.size() >= threads_.size()) {
        shut_longest();
        changed_.wait(lock);
      }
      if (threads_.empty()) {
        ::close(socket);
        return;
      }
    }
  }
  open_.push_back({.socket = socket, .talk = std::move(talk), .rests_since = ++rests_});
  changed_.notify_all();
}

void ConnectionSlots::make_room() {
  const std::lock_guard lock(mutex_);
  shut_longest();
}

void ConnectionSlots::shut_longest() {
  if (std::ranges::any_of(open_, &Connection::shut)) return;  // one is about to end
  auto longest = open_.end();
  for (auto each = open_.begin(); each != open_.end(); ++each) {
    if (each->rests && (longest == open_.end() || each->rests_since < longest->rests_since)) longest = each;
  }
  if (longest == open_.end()) return;
  longest->shut = true;
  static_cast<void>(::shutdown(longest->socket, SHUT_RDWR));
}

void ConnectionSlots::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Place mine = open_.end();
    changed_.wait(lock, [this, &mine] {
      mine = std::ranges::find(open_, false, &Connection::begun);
      return mine != open_.end() || ended_;
    });
    if (mine == open_.end()) return;
    mine->begun = true;
    lock.unlock();
    Slot slot(*this, mine);
    mine->talk(slot);
    lock.lock();
    if (!mine->rests) --at_work_;
    ::close(mine->socket);
    open_.erase(mine);
    changed_.notify_all();
  }
}

bool ConnectionSlots::take_slot(Place place) {
  const std::lock_guard lock(mutex_);
  if (place->shut || at_work_ >= most_) return false;
  if (place->rests) ++at_work_;
  place->rests = false;
  return true;
}

void ConnectionSlots::rest(Place place) {
  const std::lock_guard lock(mutex_);
  if (!place->rests) --at_work_;
  place->rests = true;
  place->rests_since = ++rests_;
  changed_.notify_all();
}

void ConnectionSlots::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace gossamer::host
