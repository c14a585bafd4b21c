// SPDX-License-Identifier: Apache-2.0
//
// Accusations: members say that others have broken a rule. Which of them has to go?
//
// A member that breaks a rule may lie about others, too, and nobody else saw what came. So one word is never
// enough against a member that serves. An accused member has to go if more than half of the judges say so,
// and at least two. Judges are the members that serve; the accused is none. Where there is one judge alone,
// its word is enough against a member that does not serve: nobody depends on that one yet.
//
// A member that serves is a judge though it is silent. After a takeover few members are heard at first, and a
// liar among them must not decide for all. Silence ends in a sign of life, or the member is fenced.
//
// So members that lie cost no life as long as they are at most half of the judges. A member that breaks rules
// towards few others stays: these have dropped what came, and it has done no harm. If it does so again and
// again, that is a dispute (disputes.h).
//
// An accusation stands until one of the two is gone. Cost: linear in the accusations that stand. Thread rule:
// one owner.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"

namespace gossamer::cluster {

class Accusations {
 public:
  // So many of one member are kept.
  static constexpr std::size_t kMostOfOne = 16;
  static constexpr std::size_t kMostRuleBytes = 300;  // of what a member says of a rule

  // `by` says that `of` has broken `rule`. True: it says so for the first time.
  bool says(NodeId by, NodeId of, const std::string& rule);
  // Whether `by` has said so.
  [[nodiscard]] bool stands(NodeId by, NodeId of) const;
  struct Verdict {
    NodeId node;
    std::string rule;  // as one of its judges says it
  };
  // A member that has to go, if there is one. `judges`: the members that serve.
  [[nodiscard]] std::optional<Verdict> settle(const std::set<NodeId>& judges) const;
  // The node is gone, for whatever reason. Its next life begins with nothing.
  void gone(NodeId node);

 private:
  std::map<NodeId, std::map<NodeId, std::string>> said_;  // by accuser: accused and rule
};

}  // namespace gossamer::cluster
