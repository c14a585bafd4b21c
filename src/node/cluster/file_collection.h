// SPDX-License-Identifier: Apache-2.0
//
// FileCollection: what members deliver (file_delivery.h, docs/protocols/delivery.md), in a directory of their
// coordinator: files appear whole, or grow. A name belongs to the node that used it first.
//
// What is on its way lies in DIRECTORY.incoming. Thread rule: one owner, the loop thread.
#pragma once

#include <gossamer/delivery.pb.h>

#include <cstdint>
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
#include "node/cluster/file_exchange.h"

namespace gossamer::node {

class FileCollection {
 public:
  struct Options {
    std::string directory;
    std::vector<std::string> growing;  // suffixes of files that grow
    std::uint64_t most_bytes = 0;      // of a file
  };

  // The exchange outlives it; all that it gets is this one's.
  FileCollection(host::Disk& disk, FileExchange& exchange, Options options)
      : disk_(disk), exchange_(exchange), options_(std::move(options)) {}

  // Consumes it. False for what is no message of a delivery.
  [[nodiscard]] bool on(const net::Arrived& arrived, net::Links& links, Instant now);
  // After the exchange's.
  void tick(net::Links& links, Instant now);
  [[nodiscard]] std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }
  // The disk has failed, or had no room, for files that were offered since, and none has come meanwhile.
  struct Failing {
    Instant since;
    Error last;
  };
  [[nodiscard]] const std::optional<Failing>& failing() const { return failing_; }

 private:
  struct Arriving {
    std::string name;
    net::PeerId from;
  };

  [[nodiscard]] Result<void> check_name(const std::string& name, NodeId from);
  void offered(net::PeerId from, const wire::Delivery& body, net::Links& links, Instant now);
  void append(const wire::Delivery& body, const Slices& payload);
  void taken(const std::string& name, const Sha256& id, net::PeerId to, net::Links& links, Instant now);
  [[nodiscard]] Result<void> put(const std::string& name, const StoredFile& file);
  [[nodiscard]] std::string incoming() const { return options_.directory + ".incoming"; }
  [[nodiscard]] std::string path(const std::string& name) const { return options_.directory + "/" + name; }
  void remark(const Error& error) { remarks_.push_back(error.message()); }
  void fails(const Error& error, Instant now);

  struct Growing {
    std::unique_ptr<host::WritableFile> file;
    std::uint64_t bytes = 0;
  };

  host::Disk& disk_;
  FileExchange& exchange_;
  const Options options_;
  std::map<std::string, NodeId> owners_;
  std::map<std::string, Sha256> taken_;
  std::map<Sha256, Arriving> arriving_;
  std::map<std::string, Growing> growing_;
  std::optional<Failing> failing_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
