// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/control_message.h"

#include <fmt/format.h>

#include <utility>

#include "net/link/frame.h"

namespace gossamer::cluster {
namespace {

template <class Proto>
net::Message packed(const Proto& said) {
  std::string bytes = said.SerializeAsString();
  net::Message message{.channel = kControlChannel, .body = {}, .payload = {}};
  if (bytes.size() <= net::kMaxBodyBytes) {
    message.body = std::move(bytes);
  } else {
    message.payload.push_back(Slice::of(std::move(bytes)));
  }
  return message;
}

template <class Proto>
Result<Proto> unpacked(const net::Message& message, const char* what) {
  Proto said;
  const bool body = message.payload.empty();
  const bool read = body ? said.ParseFromString(message.body)
                         : message.body.empty() && said.ParseFromString(joined(message.payload));
  if (!read || said.kind_case() == Proto::KIND_NOT_SET) {
    return Error{.kind = ErrorKind::kBadData,
                 .what = fmt::format("cannot read {}", what),
                 .got = fmt::format("{} bytes", net::counted_bytes(message)),
                 .expected = "a message of docs/protocols/membership.md",
                 .fix = "look whether coordinator and nodes run the same version"};
  }
  return said;
}

}  // namespace

net::Message pack(const membership::ToCoordinator& said) { return packed(said); }
net::Message pack(const membership::ToMember& said) { return packed(said); }

Result<membership::ToCoordinator> unpack_to_coordinator(const net::Message& message) {
  return unpacked<membership::ToCoordinator>(message, "what a member said");
}
Result<membership::ToMember> unpack_to_member(const net::Message& message) {
  return unpacked<membership::ToMember>(message, "what the coordinator said");
}

}  // namespace gossamer::cluster
