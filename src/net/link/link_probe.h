// SPDX-License-Identifier: Apache-2.0
//
// LinkProbe: the rare branches of a link (base/probe.h). Thread rule: plain values.
#pragma once

#include <array>
#include <cstdint>

#include "base/probe.h"

namespace gossamer::net {

enum class LinkProbe : std::uint8_t {
  kResent,
  kFencedHello,
  kGone,
  kOpenedAnew,
  kSilentConnection,
  kSilentLane,
  kSilentStranger,
  kFencedBeforeKnown,
  kUnknownLife,
  kDialedOften,
  kCount,
};

inline constexpr std::array<ProbeName<LinkProbe>, static_cast<std::size_t>(LinkProbe::kCount)> kLinkProbes{{
    {LinkProbe::kResent, "link.resent", "a lane came back with messages that were not acknowledged"},
    {LinkProbe::kFencedHello, "link.fenced-hello", "a fenced incarnation knocked, and was refused"},
    {LinkProbe::kGone, "link.gone", "a peer resumed a link that had ended here"},
    {LinkProbe::kOpenedAnew, "link.opened-anew", "a peer opened a new link where there was one"},
    {LinkProbe::kSilentConnection, "link.silent-connection",
     "a connection was closed because of its silence"},
    {LinkProbe::kSilentLane, "link.silent-lane",
     "a connection was closed because of its silence, while the other lane was heard"},
    {LinkProbe::kSilentStranger, "link.silent-stranger", "a stranger knocked, and said nothing in time"},
    {LinkProbe::kFencedBeforeKnown, "link.fenced-before-known",
     "a peer was fenced while its link was being opened"},
    {LinkProbe::kUnknownLife, "link.unknown-life",
     "an incarnation knocked of which the coordinator had not told"},
    {LinkProbe::kDialedOften, "link.dialed-often", "an address waited at which nobody had answered"},
}};

}  // namespace gossamer::net
