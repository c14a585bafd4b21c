// SPDX-License-Identifier: Apache-2.0
//
// WordBudget: how much one member may say to its coordinator: words, and the bytes in them. Of each, kAtOnce
// may be spent in a moment, and then kPerSecond. Each word takes the time of the one coordinator, and most
// have an answer, which waits there until the member has read it. Two bytes may become an object, so bytes
// take the coordinator's time too. kBytesPerSecond is some 5 % of one core where all of them do (1 MiB takes
// 24 ms).
//
// A member that was cut off says its requests once more when it is back (request_budget.h). It then also says
// at most the beats of 10 s, after which its link is known to be broken. Otherwise it says some ten words a
// second. A mark has ten bytes, so a beat that marks 4,000 tracks, the most of a fleet check, has 40 KB.
//
// Thread rule: plain value, one owner.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace gossamer::cluster {

class WordBudget {
 public:
  static constexpr double kAtOnce = 16'384;
  static constexpr double kPerSecond = 2048;
  static constexpr double kBytesAtOnce = 16 << 20;
  static constexpr double kBytesPerSecond = 2 << 20;
  // A Here costs more: its answer is the view, and other members hear of a node that joins.
  static constexpr double kOfHere = 64;

  // Pays for a word of so many bytes. False: it costs more than is left. Time never goes back.
  [[nodiscard]] bool take(std::uint64_t bytes, Instant now) {
    return pay(1, static_cast<double>(bytes), now);
  }
  // Likewise for a Here, which is taken as a word already.
  [[nodiscard]] bool take_here(Instant now) { return pay(kOfHere, 0, now); }

 private:
  bool pay(double words, double bytes, Instant now) {
    const double seconds = (now - when_).seconds();
    words_ = std::min(kAtOnce, words_ + seconds * kPerSecond);
    bytes_ = std::min(kBytesAtOnce, bytes_ + seconds * kBytesPerSecond);
    when_ = now;
    if (words_ < words || bytes_ < bytes) return false;
    words_ -= words;
    bytes_ -= bytes;
    return true;
  }

  double words_ = kAtOnce;
  double bytes_ = kBytesAtOnce;
  Instant when_;
};

}  // namespace gossamer::cluster
