// SPDX-License-Identifier: Apache-2.0
//
// DeliveryRules in a test's hands. Thread rule: the test's thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "node/files/delivery_rules.h"

namespace gossamer::node::testing {

// By default a file is awaited under the name that its sender has for it, and
// good.
class AskedRules final : public DeliveryRules {
 public:
  Verdict judge(net::PeerId from, const std::string& name) override {
    const auto known = verdicts.find(name);
    if (known != verdicts.end()) return known->second;
    return of_node && from.node != *of_node ? Verdict(Refused{"it owns no part"}) : Verdict(Awaited{name});
  }
  [[nodiscard]] Check check(net::PeerId, const std::string& name) const override {
    return [this, name](const std::string&) {
      return damaged == name ? Result<void>(Error{.kind = ErrorKind::kBadData, .what = "a wrong checksum"})
                             : Result<void>();
    };
  }

  std::map<std::string, Verdict> verdicts;
  std::optional<NodeId> of_node;
  std::string damaged;
};

}  // namespace gossamer::node::testing
