// SPDX-License-Identifier: Apache-2.0
//
// FileCollection puts what members deliver into a directory of their coordinator (file_delivery.h,
// docs/protocols/delivery.md). Files appear whole, and survive a loss of power before their sender is told. A
// name belongs to the node that used it first.
//
// Files on their way lie in DIRECTORY.incoming. Thread rule: one owner, the loop thread. Files are put in
// place aside, because a disk may take long for that.
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
#include "node/files/file_exchange.h"

namespace gossamer::node {

class FileCollection {
 public:
  struct Options {
    std::string directory;
    std::uint64_t most_bytes = 0;  // most bytes of a file
    Aside aside;
  };
  // The names of a node that are remembered. Each checkpoint adds one.
  static constexpr std::size_t kMostNames = 100;

  // The exchange outlives this object. All files that the exchange gets are for this object.
  FileCollection(host::Disk& disk, FileExchange& exchange, Options options)
      : disk_(disk), exchange_(exchange), options_(std::move(options)) {}

  // Consumes a message of a delivery. False for any other message.
  [[nodiscard]] bool on(const net::Arrived& arrived, net::Links& links, Instant now);
  // Called after the exchange's tick().
  void tick(net::Links& links, Instant now);
  [[nodiscard]] std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }
  // Since when the disk has failed, or had no room, for files that were offered. A file that comes ends this.
  struct Failing {
    Instant since;
    Error last;
  };
  [[nodiscard]] const std::optional<Failing>& failing() const { return failing_; }

 private:
  struct Arriving {
    std::string name;
    net::PeerId from;
    bool here = false;  // whole, and being put under its name
  };

  [[nodiscard]] Result<void> check_name(const std::string& name, NodeId from);
  void remember(const std::string& name, NodeId from);
  void offered(net::PeerId from, const wire::Delivery& body, net::Links& links, Instant now);
  void taken(const std::string& name, const Sha256& id, net::PeerId to, net::Links& links, Instant now);
  void arrived(const Sha256& id, Result<StoredFile> file, Instant now);
  void put(const Sha256& id, const StoredFile& file);
  void is_put(const Sha256& id, const Result<void>& done, Instant now);
  [[nodiscard]] std::string incoming() const { return options_.directory + ".incoming"; }
  [[nodiscard]] std::string path(const std::string& name) const { return options_.directory + "/" + name; }
  void remark(const Error& error) { remarks_.push_back(error.message()); }
  void fails(const Error& error, Instant now);

  host::Disk& disk_;
  FileExchange& exchange_;
  const Options options_;
  std::map<std::string, NodeId> owners_;
  std::map<NodeId, std::deque<std::string>> names_;  // the one that was used last at the end
  std::map<std::string, Sha256> taken_;
  std::map<Sha256, Arriving> arriving_;
  std::vector<std::pair<Sha256, Arriving>> untold_;  // whose senders do not know yet that they are taken
  std::optional<Failing> failing_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
