// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/kept_channels.h"

namespace gossamer::host {

void KeptChannels::Questions::asked(Now now) {
  const std::lock_guard lock(mutex_);
  ++waiting_;
  if (!since_) since_ = now;
}

void KeptChannels::Questions::ended(bool reached, Now now) {
  const std::lock_guard lock(mutex_);
  --waiting_;
  if (!reached) failed_ = true;
  since_ = waiting_ == 0 ? std::nullopt : std::optional(now);
}

bool KeptChannels::Questions::works(Now now) const {
  const std::lock_guard lock(mutex_);
  return !failed_ && (!since_ || now - *since_ < kLongestWait);
}

KeptChannels::Kept KeptChannels::take(const std::string& key, Now now,
                                      const std::function<std::shared_ptr<grpc::Channel>()>& make) {
  const std::lock_guard lock(mutex_);
  auto found = kept_.find(key);
  if (found == kept_.end() || !found->second.questions->works(now)) {
    if (found == kept_.end() && kept_.size() >= kMost) kept_.clear();
    found = kept_.insert_or_assign(key, Kept{make(), std::make_shared<Questions>()}).first;
  }
  found->second.questions->asked(now);
  return found->second;
}

void KeptChannels::clear() {
  std::map<std::string, Kept> kept;
  const std::lock_guard lock(mutex_);
  kept.swap(kept_);
}

}  // namespace gossamer::host
