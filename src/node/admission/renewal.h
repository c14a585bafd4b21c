// SPDX-License-Identifier: Apache-2.0
//
// Renewal: when a certificate is to be renewed (docs/protocols/admission.md, "Renewing"). It is due once half
// of its time is over. An attempt that fails is repeated, also after the certificate has ended. Nothing is
// done here: a coordinator signs for itself, and a member asks the coordinator.
//
// Times are seconds since 1970-01-01 UTC, by the machine's own clock. That clock may be set, and a machine
// may sleep: so the user looks again at least each minute. A clock that was set back before the last attempt,
// or before the certificate begins to hold, makes it due at once. No attempt could be due for as long as the
// clock had been ahead.
//
// Thread rule: one owner.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "base/ids.h"
#include "base/time.h"
#include "host/grpc/certificates.h"

namespace gossamer::node {

class Renewal {
 public:
  static constexpr double kLongestLook = 60;
  static constexpr double kLongestWait = 3600;  // between two attempts
  static constexpr double kLongestAtEnd = 10;   // while the certificate does not hold

  // Never due.
  Renewal() = default;
  // One that cannot be read is never due.
  explicit Renewal(const std::string& certificate) {
    const auto time = host::time_of(certificate);
    if (!time.ok()) return;
    time_ = *time;
    next_ = (time_.signed_at + time_.until) / 2;
    since_ = time_.from;
  }

  [[nodiscard]] double until() const { return time_.until; }
  [[nodiscard]] bool due(double now) const { return now >= next_ || now < since_; }
  // A node whose certificate has ended can do nothing before it has another.
  [[nodiscard]] bool ended(double now) const { return now >= time_.until; }
  // An attempt begins. The next one is due after a 64th of the certificate's time.
  void attempt(double now) {
    const double length = time_.until - time_.signed_at;
    const bool holds = time_.from <= now && !ended(now);
    next_ = now + std::clamp(length / 64, 1.0, holds ? kLongestWait : kLongestAtEnd);
    since_ = now;
  }
  // How long the user need not look.
  [[nodiscard]] Duration look_again_in(double now) const {
    return from_seconds(std::clamp(next_ - now, 0.0, kLongestLook));
  }

 private:
  static constexpr double kNever = 1e18;

  host::CertificateTime time_ = {.from = -kNever, .signed_at = kNever, .until = kNever};
  double next_ = kNever;
  double since_ = -kNever;  // next_ was meant for a clock that does not stand before
};

// The coordinator's half: how often one node may renew. Each renewal costs two verifications, a signature and
// a line of events, and a node may ask without end. Half of the time between two attempts of Renewal is never
// in the way of an honest node.
class RenewalRate {
 public:
  // How far apart renewals of one node are, where certificates hold for so many seconds.
  [[nodiscard]] static Duration apart(double seconds, host::Ended ended) {
    const bool accepted = ended == host::Ended::kAccepted;
    return from_seconds(std::min(seconds / 64, accepted ? Renewal::kLongestAtEnd : Renewal::kLongestWait) /
                        2);
  }
  // Takes a renewal of the node, unless its last one is nearer than that.
  [[nodiscard]] bool take(NodeId node, Duration apart, Instant now) {
    const auto [last, first] = last_.try_emplace(node, now);
    if (!first && now - last->second < apart) return false;
    last->second = now;
    return true;
  }

 private:
  std::map<NodeId, Instant> last_;
};

}  // namespace gossamer::node
