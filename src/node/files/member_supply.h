// SPDX-License-Identifier: Apache-2.0
//
// MemberSupply: a member's side of a Supply. If the user says so, files lie in place, where this machine has
// the coordinator's files under the same paths. Otherwise they are fetched into the node's directory, from
// the coordinator and from all members that have them. Either way they are then given on. Without the
// coordinator's directories the member delivers from a directory of its own (docs/protocols/delivery.md).
//
//   DIR/data      the files; kept until the run ends, so that a process that starts again goes on with them.
//                 What an earlier process has left there is read once, and used only if its hash is right
//   DIR/deliver   files on their way to the coordinator; an earlier process may have left some without one.
//   They
//                 are brought before the engine begins: the run may go on with them
//
// Thread rule: one owner, the loop thread. Hashing and large writes go to Aside.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "host/api/disk.h"
#include "net/link/links.h"
#include "node/files/file_delivery.h"
#include "node/files/file_exchange.h"
#include "node/files/supply.h"

namespace gossamer::node {

class MemberSupply {
 public:
  struct Options {
    std::string directory;  // of this node, from the root
    std::uint64_t seed = 0;
    // Given to all other nodes together, because the node's steps go over the same line.
    double bytes_per_second = 32e6;
    // Looks for the files under the coordinator's own paths on this machine, because the user said so.
    // Otherwise no path that a coordinator names is looked at.
    bool in_place = false;
  };
  static constexpr Duration kSayEvery{5'000'000'000};
  // How long the engine waits for files of an earlier process to be brought, while nothing of them comes to
  // the coordinator. A large file over a slow line takes longer, and the run goes on from what it has.
  static constexpr Duration kBringTime{600'000'000'000};

  // Looks which files are here, and begins to fetch the others. The disk outlives it.
  MemberSupply(host::Disk& disk, Supply told, Aside aside, Options options, Instant now);
  // Removes what it has fetched, if the run is over. What is not brought yet stays.
  ~MemberSupply();

  // What a node with this directory has to deliver.
  [[nodiscard]] static std::string deliveries(const std::string& directory) { return directory + "/deliver"; }

  // Takes the links of another life. Null between two lives.
  void connect(net::Links* links);
  // Consumes a message about files. False: it is none.
  [[nodiscard]] bool on(const net::Arrived& arrived, net::PeerId coordinator, Instant now);
  // Files may be fetched from these. To be called again and again until all files are here.
  void donors(const std::set<net::PeerId>& donors);
  void tick(net::PeerId coordinator, Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;
  // The run has ended, and with it the use of its files.
  void run_over() { over_ = true; }

  // All files are here, and those of an earlier process are brought.
  [[nodiscard]] bool here() const { return missing_.empty() && !failure_ && !brings_; }
  // Where files lie, once they are here.
  [[nodiscard]] const Supplied& supplied() const { return supplied_; }
  // Why the files will never be here.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // When something of what this member delivers came to the coordinator last.
  [[nodiscard]] std::optional<Instant> moved() const {
    return delivery_ == nullptr ? std::nullopt : delivery_->moved();
  }
  // What people should know, since the last call.
  // Peers that have broken a rule of the exchange of files.
  [[nodiscard]] std::vector<FileExchange::Blamed> take_blamed() { return exchange_.take_blamed(); }
  [[nodiscard]] std::vector<std::string> take_remarks();

 private:
  [[nodiscard]] bool find_in_place();
  void look_for_own();
  void verify(const Supply::File& file);
  void verified(const Supply::File& file, Result<StoredFile> found);
  void fetch(const Supply::File& file);
  void here(const Sha256& id, StoredFile file);
  void fetched(FileExchange::Got got, Instant now);
  void all_here();
  void say_progress(Instant now);
  [[nodiscard]] std::string own(const std::string& name) const { return options_.directory + "/" + name; }

  host::Disk& disk_;
  const Aside aside_;
  const Options options_;
  Supplied supplied_;
  FileExchange exchange_;
  std::unique_ptr<FileDelivery> delivery_;  // null in place, and until all files are here
  net::Links* links_ = nullptr;             // of this life

  std::vector<StoredFile> stored_;  // files that are here
  std::vector<Supply::File> missing_;
  std::uint64_t fetched_bytes_ = 0;
  const Instant began_;
  Instant next_say_;
  bool brings_ = false;                  // files of an earlier process
  std::optional<Instant> brings_since_;  // or since when nothing of them has come to the coordinator
  bool over_ = false;
  std::optional<Error> failure_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
