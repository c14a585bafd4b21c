// SPDX-License-Identifier: Apache-2.0
//
// FileDelivery brings the files that appear in a directory of a member to the coordinator, which has a
// directory like it (file_collection.h, docs/protocols/delivery.md). A file is complete when its name
// appears. It is offered as chunks, and removed once the coordinator has it whole.
//
// Names that end in .tmp are not looked at, nor is the directory "outgoing", where files wait as NUMBER-NAME.
// Beside the directory is DIRECTORY.unread, with the files that this machine's disk does not give back.
//
// A file that was under way when a link, a coordinator or a process of the member ended is offered again. A
// member may have left without a coordinator. Thread rule: one owner, the loop thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "host/api/disk.h"
#include "net/link/links.h"
#include "node/files/file_exchange.h"

namespace gossamer::node {

class FileDelivery {
 public:
  static constexpr Duration kLookEvery{200'000'000};
  static constexpr Duration kOfferEvery{5'000'000'000};
  // A file that could not be read is read again after this time.
  static constexpr Duration kDescribeEvery{5'000'000'000};
  // A shortage of memory or descriptors is over by then. A damaged disk is not, and the run would wait for
  // it.
  static constexpr Duration kReadTime{300'000'000'000};

  // Starts a delivery, first of what an earlier process left in the directory. The exchange outlives the
  // delivery.
  [[nodiscard]] static Result<std::unique_ptr<FileDelivery>> start(host::Disk& disk, FileExchange& exchange,
                                                                   Aside aside, std::string directory);

  // Whether there is a file in that directory that a delivery will take. Any thread.
  [[nodiscard]] static bool has_to_take(host::Disk& disk, const std::string& directory);
  // Whether some delivery has taken a file out of that directory, and the coordinator
  // may not have it yet. Any thread.
  [[nodiscard]] static bool under_way(host::Disk& disk, const std::string& directory);

  // Moves what waits in that directory to another name beside it, and returns that. Nothing: nothing waits.
  [[nodiscard]] static Result<std::optional<std::string>> set_aside(host::Disk& disk,
                                                                    const std::string& directory);

  // Whether the coordinator does not have all yet that an earlier process left.
  [[nodiscard]] bool brings_earlier() const {
    return !files_.empty() && files_.begin()->first <= last_earlier_;
  }

  // When something of these files came to the coordinator last. Only its own word counts. So no other peer
  // that asks for chunks makes a member wait. A coordinator that asks for ever harms only the run that it
  // leads.
  [[nodiscard]] std::optional<Instant> moved() const { return moved_; }

  // Consumes a message of a delivery. False for any other message.
  [[nodiscard]] bool on(const net::Arrived& arrived, net::PeerId coordinator, net::Links& links, Instant now);
  void tick(net::PeerId coordinator, net::Links& links, Instant now);
  [[nodiscard]] Instant next_wakeup() const { return next_look_; }
  [[nodiscard]] std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }

 private:
  struct Outgoing {
    std::string name;
    std::string path;
    std::optional<StoredFile> stored = {};  // nothing until it is described
    Instant next_offer = {};
    std::optional<Instant> describe_at = {};   // when it is described again
    std::optional<Instant> unread_since = {};  // when it could not be read for the first time
  };

  FileDelivery(host::Disk& disk, FileExchange& exchange, Aside aside, std::string directory)
      : disk_(disk), exchange_(exchange), aside_(std::move(aside)), directory_(std::move(directory)) {}

  [[nodiscard]] static std::string outgoing(const std::string& directory) { return directory + "/outgoing"; }
  [[nodiscard]] Result<void> take_up_earlier();
  void look();
  void take(const std::string& name);
  void add(std::uint64_t number, const std::string& name);
  [[nodiscard]] std::string path_of(std::uint64_t number, const std::string& name) const;
  void describe(std::uint64_t number, Outgoing& file);
  void described(std::uint64_t number, Result<StoredFile> stored, Instant now);
  void give_up_reading(std::map<std::uint64_t, Outgoing>::iterator file);
  void forget(std::map<std::uint64_t, Outgoing>::iterator file);
  void remark(const Error& error) { remarks_.push_back(error.message()); }

  host::Disk& disk_;
  FileExchange& exchange_;
  const Aside aside_;
  const std::string directory_;
  std::map<std::uint64_t, Outgoing> files_;  // in the order in which they appeared
  std::uint64_t last_number_ = 0;
  std::uint64_t last_earlier_ = 0;  // of an earlier process
  std::uint64_t link_ = 0;          // number of the link with the coordinator
  std::uint64_t acknowledged_ = 0;  // bytes of its bulk lane, which has little else for a coordinator
  std::optional<Instant> moved_;
  Instant next_look_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
