// SPDX-License-Identifier: Apache-2.0
//
// DeliveryRules: what a coordinator awaits of its members (docs/protocols/delivery.md). A member only offers.
// The rules say from the coordinator's own books whether the file is asked for, and what it will be called.
//
// Thread rule: the loop thread. What check() returns is called on another thread, and touches nothing that
// changes.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "base/result.h"
#include "net/link/links.h"

namespace gossamer::node {

class DeliveryRules {
 public:
  // The file is awaited, and will be called `name`, whatever its sender calls it. is_plain_name().
  struct Awaited {
    std::string name;
  };
  // The books do not show yet that it can be there. `own`: not even what its sender has said itself shows it.
  // `former`: a former process of its sender may have written it, and what is done now comes to it by another
  // way.
  struct Early {
    bool own = false;
    bool former = false;
  };
  // It is in order, and of no use any more. Its sender may remove it.
  struct Unneeded {};
  // Its sender cannot have it: `why`, for people.
  struct Refused {
    std::string why;
  };
  using Verdict = std::variant<Awaited, Early, Unneeded, Refused>;
  // Whether the file at this path is what its sender should have. kBadData: its sender is to blame.
  using Check = std::function<Result<void>(const std::string& path)>;

  DeliveryRules() = default;
  DeliveryRules(const DeliveryRules&) = delete;
  DeliveryRules& operator=(const DeliveryRules&) = delete;
  virtual ~DeliveryRules() = default;

  // `name`: what the member calls the file. It may be any text.
  [[nodiscard]] virtual Verdict judge(net::PeerId from, const std::string& name) = 0;
  // For a file that was awaited when it was judged last.
  [[nodiscard]] virtual Check check(net::PeerId from, const std::string& name) const = 0;
};

}  // namespace gossamer::node
