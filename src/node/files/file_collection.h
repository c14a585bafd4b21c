// SPDX-License-Identifier: Apache-2.0
//
// FileCollection asks the members of a coordinator for the files that it awaits, and puts them into a
// directory (file_delivery.h, docs/protocols/delivery.md). Members offer files. DeliveryRules say which of
// them are asked for, and their names. Files appear whole and checked, and survive a loss of power before
// their sender is told. A member that offers what it cannot have, or sends something else, is to be blamed.
//
// Files on their way lie in DIRECTORY.incoming: at most one of a node at a time. Thread rule: one owner, the
// loop thread. Files are checked and put in place aside, because a disk may take long for that.
#pragma once

#include <gossamer/delivery.pb.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "host/api/disk.h"
#include "net/link/links.h"
#include "node/files/delivery_rules.h"
#include "node/files/file_exchange.h"

namespace gossamer::node {

class FileCollection {
 public:
  struct Options {
    std::string directory;
    std::uint64_t most_bytes = 0;  // most bytes of a file
    Aside aside;
  };
  // A member to be fenced.
  struct Blamed {
    net::PeerId peer;
    std::string why;  // for people
  };
  // Offers of a node that wait, and files of it that were taken or refused and are remembered.
  static constexpr std::size_t kMostOffers = 16;
  static constexpr std::size_t kMostNames = 100;
  // How long a member may offer what its own words do not show yet. Time in which nothing is heard of it does
  // not count.
  static constexpr Duration kEarlyTime{1'500'000'000};
  static constexpr Duration kJudgeEvery{50'000'000};
  // An offer that its sender does not repeat for so long, though it is heard, is forgotten. So is a node that
  // is away for a day, with all that it has offered.
  static constexpr Duration kOfferTime{30'000'000'000};
  static constexpr Duration kAwayTime{86'400'000'000'000};

  // The exchange and the rules outlive this object. All files that the exchange gets are for this object.
  FileCollection(host::Disk& disk, FileExchange& exchange, DeliveryRules& rules, Options options)
      : disk_(disk), exchange_(exchange), rules_(rules), options_(std::move(options)) {}

  // Consumes a message of a delivery. False for any other message.
  [[nodiscard]] bool on(const net::Arrived& arrived, net::Links& links, Instant now);
  // Called after the exchange's tick().
  void tick(net::Links& links, Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;
  [[nodiscard]] std::vector<Blamed> take_blamed() { return std::exchange(blamed_, {}); }
  [[nodiscard]] std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }
  // When the disk failed last, or had no room, for files that were awaited. A file that comes ends this.
  struct Failing {
    Instant at;
    Error last;
  };
  [[nodiscard]] const std::optional<Failing>& failing() const { return failing_; }

 private:
  struct Offer {
    std::string name;  // the member's own
    Sha256 id{};
    net::PeerId from;
    Duration unrepeated = {};  // how long its sender was heard since it was made last
    std::string as = {};       // the file's name here, once it was asked for
    bool here = false;         // whole, and being checked and put under its name
    Duration early = {};       // how long it was offered though its sender's own words do not show it
  };
  struct Known {
    std::string name;
    Sha256 id{};
    bool good = false;
  };
  struct Node {
    std::vector<Offer> offers;  // the first one that is awaited is asked for
    std::deque<Known> known;    // taken or refused, the newest last
    Duration away = {};         // how long nothing was heard of it
  };

  void offered(net::PeerId from, const wire::Delivery& body, net::Links& links, Instant now);
  void judge_all(net::Links& links, Instant now);
  void forget_old(Node& node, bool hears, Duration since);
  void judge_of(Node& node, net::Links& links, Instant now);
  void ask(Offer& offer, std::string as);
  void answer(wire::Delivery::Kind kind, const Offer& offer, net::Links& links, Instant now);
  void refuse(const Offer& offer, const std::string& why, net::Links& links, Instant now);
  void remember(const Offer& offer, bool good);
  void forget(const Offer& offer);
  [[nodiscard]] Offer* asked(const Sha256& id);
  void arrived(const Sha256& id, Result<StoredFile> file);
  void put(const Offer& offer, const StoredFile& file);
  [[nodiscard]] std::string incoming(const Offer& offer) const;
  void fails(const Error& error, Instant now);

  host::Disk& disk_;
  FileExchange& exchange_;
  DeliveryRules& rules_;
  const Options options_;
  std::map<NodeId, Node> nodes_;
  std::vector<std::pair<Sha256, Result<void>>> done_;  // checked and put, or not; not told yet
  Instant next_judge_;
  Instant judged_;
  std::optional<Failing> failing_;
  std::vector<Blamed> blamed_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
