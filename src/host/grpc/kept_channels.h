// SPDX-License-Identifier: Apache-2.0
//
// KeptChannels: the channels of questions that are asked again and again, one for each address. A channel
// serves as long as it works. The first question that fails takes it out of use, and so does one that has
// waited for kLongestWait. A channel of before answers the questions that it has.
//
// Channels must not be freed on gRPC's threads, so only their users have references. Thread rule: any thread.
#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace gossamer::host {

class KeptChannels {
 public:
  using Now = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kLongestWait{3000};
  static constexpr std::size_t kMost = 16;  // addresses

  // The questions of one channel.
  class Questions {
   public:
    void asked(Now now);
    // `reached`: an answer came, be it an error.
    void ended(bool reached, Now now);
    [[nodiscard]] bool works(Now now) const;

   private:
    mutable std::mutex mutex_;
    // Guarded by mutex_.
    bool failed_ = false;
    std::size_t waiting_ = 0;
    std::optional<Now> since_;  // nothing was answered, though something waits
  };
  struct Kept {
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<Questions> questions;
  };

  // The channel for the next question to `key`, made if there is none that works. The question counts as
  // asked.
  [[nodiscard]] Kept take(const std::string& key, Now now,
                          const std::function<std::shared_ptr<grpc::Channel>()>& make);
  // No channel is taken any more, such as those with an old certificate.
  void clear();

 private:
  std::mutex mutex_;
  std::map<std::string, Kept> kept_;  // guarded by mutex_
};

}  // namespace gossamer::host
