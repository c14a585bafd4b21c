// SPDX-License-Identifier: Apache-2.0
//
// What coordinator and members say to each other, as messages of a link: docs/protocols/membership.md. And
// how their links are set up.
// Thread rule: plain functions.
#pragma once

#include <gossamer/membership.pb.h>

#include <string>

#include "base/result.h"
#include "cluster/control/defect.h"
#include "net/link/channels.h"
#include "net/link/links.h"
#include "net/link/message.h"

namespace gossamer::cluster {

using net::kControlChannel;

[[nodiscard]] net::Message pack(const membership::ToCoordinator& said);
[[nodiscard]] net::Message pack(const membership::ToMember& said);

// The error is kBadData for bytes that are no such message, or a message of an unknown kind.
[[nodiscard]] Result<membership::ToCoordinator> unpack_to_coordinator(const net::Message& message);
[[nodiscard]] Result<membership::ToMember> unpack_to_member(const net::Message& message);

// How links of a process with the defect hear silence.
[[nodiscard]] constexpr net::Links::Options::Silence silence_by(Defect defect) {
  using Silence = net::Links::Options::Silence;
  return defect == Defect::kSilenceOfLink ? Silence::kOfLink : Silence::kOfLane;
}

}  // namespace gossamer::cluster
