// SPDX-License-Identifier: Apache-2.0
//
// FileExchange gives files to other nodes of the run and gets files from them, by content
// (docs/protocols/chunks.md). It uses the bulk lane of the links that the node has anyway. It is a Donor and
// Fetchers with their disk. Bytes for others are read from mapped files. Bytes that come are checked and then
// written on another thread (Aside). Only after that may the sender go on.
//
// Chunks that came survive the process: get() of the same path goes on from there.
//
// Thread rule: one owner, the loop thread. Work given to Aside runs on another thread, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "base/time.h"
#include "cluster/chunks/donor.h"
#include "cluster/chunks/fetcher.h"
#include "host/api/disk.h"
#include "net/link/channels.h"
#include "net/link/links.h"
#include "node/files/incoming_file.h"
#include "node/files/stored_file.h"

namespace gossamer::node {

using net::kChunkAnswers;
using net::kChunkRequests;
using net::kDeliveries;  // file_delivery.h

// Does the work on another thread, and calls `then` on the loop when it is done.
using Aside = std::function<void(std::function<void()> work, std::function<void(Instant)> then)>;

class FileExchange {
 public:
  struct Options {
    Aside aside;
    std::uint64_t seed = 0;
    // Most bytes a second given to all others together. More must wait, so that
    // helping does not hold up the work.
    double bytes_per_second = 1e9;
  };
  struct Wanted {
    Sha256 id{};
    std::string path;
    std::uint64_t most_bytes = 0;
    // A donor that sends something else ends it with kBadData. Otherwise other donors are asked.
    bool ends_with_donor = false;
  };
  // The end of a get(): the file, or the error why it cannot be had.
  struct Got {
    Sha256 id{};
    Result<StoredFile> file;
  };

  FileExchange(host::Disk& disk, Options options, Instant now);

  // Gives the links of another life or lead. Null between two.
  void connect(net::Links* links);

  // Gives this whole file, from now on, to every node that asks: every node of the run may have it.
  [[nodiscard]] Result<void> give(const StoredFile& file);
  void withdraw(const Sha256& id) { donor_.withdraw(id); }

  // Begins to get a file. donors() names the nodes to get it from, and may change them at any time.
  void get(const Wanted& wanted);
  void donors(const Sha256& id, std::set<net::PeerId> donors);
  // Gives up. The chunks on disk stay.
  void drop(const Sha256& id) { gettings_.erase(id); }
  [[nodiscard]] bool gets(const Sha256& id) const { return gettings_.contains(id); }
  struct Progress {
    std::uint64_t here = 0;
    std::uint64_t bytes = 0;  // 0: not known yet
  };
  [[nodiscard]] Progress progress(const Sha256& id) const;

  // Consumes messages of the two channels of chunks. False for messages of other channels.
  [[nodiscard]] bool on(net::Arrived arrived, Instant now);
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  [[nodiscard]] std::vector<Got> take_got() { return std::exchange(got_, {}); }
  // A peer has sent what no correct node sends: bytes that are no question or no answer, or more questions
  // than files have chunks. A chunk with another hash is none of these, as a bad disk makes one, too.
  struct Blamed {
    net::PeerId peer;
    Error error;
  };
  [[nodiscard]] std::vector<Blamed> take_blamed() { return std::exchange(blamed_, {}); }
  // Remarks for people, such as the name of a node that lied.
  [[nodiscard]] std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }

 private:
  struct Getting {
    Wanted wanted;
    std::uint64_t number = 0;  // unique: never used again
    std::shared_ptr<IncomingFile> file = nullptr;
    std::optional<cluster::Fetcher> fetcher = {};  // nothing until it is known which chunks are here
    std::set<net::PeerId> donors = {};
    std::map<net::PeerId, std::uint64_t> asked = {};  // number of the link on which the donor was asked
    std::uint64_t here_bytes = 0;
  };
  struct Served {
    std::uint64_t link = 0;
    std::deque<net::Ticket> chunks;  // chunks that are under way
  };

  // The questions that a peer may still ask at once.
  struct Room {
    double questions = 0;
    Instant since;
  };

  void on_request(const net::Arrived& arrived, Instant now);
  [[nodiscard]] bool may_ask(net::PeerId peer, double questions, Instant now);
  void on_answer(net::Arrived arrived, Instant now);
  void opened(std::uint64_t number, Result<std::shared_ptr<IncomingFile>> file, Instant now);
  void meet_donors(Getting& getting, Instant now);
  void carry_out(Getting& getting, cluster::FetchEvents events, std::optional<net::Receipt> receipt,
                 Instant now);
  void write(const Getting& getting, cluster::ChunkHere chunk, const std::optional<net::Receipt>& receipt);
  void finish(const Getting& getting);
  void fail(std::uint64_t number, const Error& error);
  void do_for(const Getting& getting, std::function<Result<void>(IncomingFile&)> work,
              const std::optional<net::Receipt>& receipt);
  void consumed(const net::Receipt& receipt, std::uint64_t life, Instant now);
  [[nodiscard]] Getting* find(std::uint64_t number);

  host::Disk& disk_;
  const Options options_;
  cluster::Donor donor_;
  net::Links* links_ = nullptr;
  std::uint64_t life_ = 0;  // of links_
  std::uint64_t last_number_ = 0;
  std::map<Sha256, Getting> gettings_;
  std::map<net::PeerId, Served> served_;
  std::vector<Got> got_;
  std::map<net::PeerId, Room> rooms_;
  std::vector<Blamed> blamed_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
