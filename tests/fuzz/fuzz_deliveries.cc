// SPDX-License-Identifier: Apache-2.0
//
// A coordinator that collects files, before members that offer anything, half right or in bytes, while the
// rules say anything of what they offer. Nothing crashes. A message is consumed if it is one of a delivery.
// Only who has said something is blamed, or who offered what the rules refuse.
#include <gossamer/delivery.pb.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/time.h"
#include "choices.h"
#include "cluster/control/test_nobody.h"
#include "host/sim/disk.h"
#include "node/files/file_collection.h"
#include "node/files/file_exchange.h"

namespace {

using namespace gossamer;
using namespace gossamer::node;
using fuzz::Choices;

class AnyRules final : public DeliveryRules {
 public:
  explicit AnyRules(Choices& choices) : choices_(choices) {}
  Verdict judge(net::PeerId, const std::string& name) override {
    switch (choices_.below(4)) {
      case 0: return Early{choices_.flip()};
      case 1: return Unneeded{};
      case 2: return Refused{"it owns nothing"};
      default: return Awaited{name.empty() ? "a" : "b"};
    }
  }
  [[nodiscard]] Check check(net::PeerId, const std::string&) const override {
    return [](const std::string&) -> Result<void> {
      return Error{.kind = ErrorKind::kBadData, .what = "a wrong checksum"};
    };
  }

 private:
  Choices& choices_;
};

std::string message(Choices& choices) {
  if (choices.below(8) == 0) return choices.text();
  wire::Delivery body;
  body.set_kind(static_cast<wire::Delivery::Kind>(choices.below(5)));
  body.set_name(choices.text(4));
  body.set_manifest(std::string(choices.below(8) == 0 ? choices.below(40) : 32, choices.flip() ? 'x' : 'y'));
  return body.SerializeAsString();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  cluster::Nobody network;
  net::Links links(network, {.run = "run", .self = {NodeId(1), Incarnation(1)}, .program = "fuzz"});
  host::SimDisk disk;
  Instant now;
  std::vector<std::pair<std::function<void()>, std::function<void(Instant)>>> work;
  const Aside aside = [&work](std::function<void()> one, std::function<void(Instant)> then) {
    work.emplace_back(std::move(one), std::move(then));
  };
  FileExchange exchange(disk, {.aside = aside, .seed = 1}, now);
  exchange.connect(&links);
  AnyRules rules(choices);
  FileCollection collection(disk, exchange, rules,
                            {.directory = "/parts", .most_bytes = 1000, .aside = aside});
  bool said = false;
  while (choices.left()) {
    if (choices.below(4) == 0) {
      now = now + from_milliseconds(static_cast<double>(choices.below(60'000)));
      for (auto& [one, then] : std::exchange(work, {})) {
        one();
        then(now);
      }
      exchange.tick(now);
      collection.tick(links, now);
    } else {
      said = true;
      const net::PeerId from{NodeId(2 + choices.below(2)), Incarnation(1 + choices.below(2))};
      CHECK(collection.on({.from = from,
                           .message = {.channel = kDeliveries, .body = message(choices), .payload = {}},
                           .receipt = {}},
                          links, now));
    }
    for (const FileCollection::Blamed& one : collection.take_blamed()) CHECK(said && !one.why.empty());
    static_cast<void>(collection.take_remarks());
  }
  return 0;
}
