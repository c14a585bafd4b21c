// SPDX-License-Identifier: Apache-2.0
//
// FileTree: files and directories in memory, each in two states: as programs see them now, and as they are
// known to be on the medium. It is the state of the simulated disk without its faults; internal to host/sim.
//
// Names: every change of a name (make, rename, remove) enters a journal. sync_names(directory) moves the
// changes of that directory to the medium, with the older changes of the same names. A crash moves a random
// subset of the other changes there. Different names are independent of each other. Changes of one name
// happen in order, and both names of a rename change or neither does.
// Bytes: sync_bytes() moves a file's bytes to the medium. A crash leaves an unsynced file with its bytes on
// the medium and a random prefix of those appended since. A truncated file may also have its old content.
//
// Preconditions are CHECKed: callers resolve paths first. Owner: SimDisk. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace gossamer::host {

// What a torn write leaves in the unsynced part of a file, behind the bytes that reached the medium.
enum class TornTail {
  kCut,      // nothing: the file is shorter
  kGarbage,  // sometimes random bytes: the length reached the medium before the content
};

class FileTree {
 public:
  using Node = std::size_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = ~Node{0};

  // Where a path leads.
  struct Place {
    Node parent = kNone;      // the directory that holds the name, kNone where there is none
    std::string name;         // empty for the root
    Node node = kNone;        // what the name leads to now, kNone where it is missing
    bool below_file = false;  // the path goes through something that is not a directory
  };

  FileTree();

  // Resolves '/'-separated names from the root; "", "." and a leading '/' are the root, ".." goes up.
  [[nodiscard]] Place resolve(const std::string& path) const;
  [[nodiscard]] bool is_directory(Node node) const { return entries_[node].directory; }
  [[nodiscard]] const std::vector<std::byte>& bytes(Node node) const { return entries_[node].bytes; }
  [[nodiscard]] const std::map<std::string, Node>& names(Node node) const { return entries_[node].names; }
  // Whether `node` is `below` or in it.
  [[nodiscard]] bool contains(Node node, Node below) const;
  // Bytes of all files that have a name.
  [[nodiscard]] std::uint64_t used_bytes(Node from = kRoot) const;

  // Require place.parent; make_* that the name is free.
  Node make_file(const Place& place);
  Node make_directory(const Place& place);
  void remove(const Place& place);  // with everything in it
  void rename(const Place& from, const Place& to);

  void truncate(Node file);
  void append(Node file, std::span<const std::byte> bytes);
  void sync_bytes(Node file);
  void sync_names(Node directory);

  // The tree that a machine finds when it starts after a crash now.
  [[nodiscard]] FileTree after_crash(Rng& rng, TornTail tail) const;

 private:
  struct Entry {
    bool directory = false;
    bool truncated = false;  // since the last sync: bytes does not start with medium_bytes
    std::vector<std::byte> bytes, medium_bytes;
    std::map<std::string, Node> names, medium_names;
  };
  using Name = std::pair<Node, std::string>;  // a name in a directory
  struct NameIs {
    Name name;
    Node node;  // kNone: no such name
  };
  using Change = std::vector<NameIs>;  // happens as a whole

  Node add(bool directory);
  void change(Change change);  // changes the names that programs see; enters the journal
  static void apply(const Change& change, std::vector<Entry>& entries);
  [[nodiscard]] static bool touches(const Change& change, const std::set<Name>& names);
  [[nodiscard]] static std::vector<std::byte> surviving_bytes(const Entry& file, Rng& rng, TornTail tail);
  void copy_survivors(const std::vector<Entry>& medium, Node from, Node to, Rng& rng, TornTail tail);

  std::vector<Entry> entries_;
  std::vector<Change> journal_;
};

}  // namespace gossamer::host
