// SPDX-License-Identifier: Apache-2.0
#include "host/sim/file_tree.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::host {

FileTree::FileTree() { add(true); }

FileTree::Node FileTree::add(bool directory) {
  entries_.push_back({});
  entries_.back().directory = directory;
  return entries_.size() - 1;
}

FileTree::Place FileTree::resolve(const std::string& path) const {
  std::vector<Place> way = {{.parent = kNone, .name = "", .node = kRoot}};
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    const Place& last = way.back();
    const bool in_directory = last.node != kNone && is_directory(last.node);
    if (name.empty() || (name == "." && in_directory)) continue;
    if (name == ".." && in_directory) {
      if (way.size() > 1) way.pop_back();
      continue;
    }
    Place next{.parent = kNone, .name = name, .below_file = last.below_file};
    if (in_directory) {
      next.parent = last.node;
      const auto found = names(last.node).find(name);
      if (found != names(last.node).end()) next.node = found->second;
    } else if (last.node != kNone) {
      next.below_file = true;
    }
    way.push_back(next);
  }
  return way.back();
}

bool FileTree::contains(Node node, Node below) const {
  if (node == below) return true;
  return std::ranges::any_of(names(node), [&](const auto& entry) { return contains(entry.second, below); });
}

std::uint64_t FileTree::used_bytes(Node from) const {
  std::uint64_t used = bytes(from).size();
  for (const auto& [name, node] : names(from)) used += used_bytes(node);
  return used;
}

FileTree::Node FileTree::make_file(const Place& place) {
  CHECK(place.parent != kNone && place.node == kNone, place.name);
  const Node node = add(false);
  change({{.name = {place.parent, place.name}, .node = node}});
  return node;
}

FileTree::Node FileTree::make_directory(const Place& place) {
  CHECK(place.parent != kNone && place.node == kNone, place.name);
  const Node node = add(true);
  change({{.name = {place.parent, place.name}, .node = node}});
  return node;
}

void FileTree::remove(const Place& place) {
  CHECK(place.parent != kNone && place.node != kNone, place.name);
  // Inner names first, each a change of its own: a crash may leave a part.
  while (!names(place.node).empty()) {
    const auto& [name, node] = *names(place.node).begin();
    remove({.parent = place.node, .name = name, .node = node});
  }
  change({{.name = {place.parent, place.name}, .node = kNone}});
}

void FileTree::rename(const Place& from, const Place& to) {
  CHECK(from.parent != kNone && from.node != kNone && to.parent != kNone, from.name, to.name);
  change(
      {{.name = {from.parent, from.name}, .node = kNone}, {.name = {to.parent, to.name}, .node = from.node}});
}

void FileTree::change(Change change) {
  for (const NameIs& is : change) {
    auto& names = entries_[is.name.first].names;
    if (is.node == kNone) {
      names.erase(is.name.second);
    } else {
      names[is.name.second] = is.node;
    }
  }
  journal_.push_back(std::move(change));
}

void FileTree::apply(const Change& change, std::vector<Entry>& entries) {
  for (const NameIs& is : change) {
    auto& names = entries[is.name.first].medium_names;
    if (is.node == kNone) {
      names.erase(is.name.second);
    } else {
      names[is.name.second] = is.node;
    }
  }
}

bool FileTree::touches(const Change& change, const std::set<Name>& names) {
  return std::ranges::any_of(change, [&](const NameIs& is) { return names.contains(is.name); });
}

void FileTree::truncate(Node file) {
  Entry& entry = entries_[file];
  if (entry.bytes.empty()) return;
  entry.bytes.clear();
  entry.truncated = true;
}

void FileTree::append(Node file, std::span<const std::byte> bytes) {
  Entry& entry = entries_[file];
  CHECK(!entry.directory, file);
  entry.bytes.insert(entry.bytes.end(), bytes.begin(), bytes.end());
}

void FileTree::sync_bytes(Node file) {
  Entry& entry = entries_[file];
  if (entry.truncated) entry.medium_bytes.clear();
  const auto synced = static_cast<std::ptrdiff_t>(entry.medium_bytes.size());
  entry.medium_bytes.insert(entry.medium_bytes.end(), entry.bytes.begin() + synced, entry.bytes.end());
  entry.truncated = false;
}

void FileTree::sync_names(Node directory) {
  // Goes from the newest change to the oldest. A change is due if it belongs to this directory, or comes
  // before a due one of the same name.
  std::set<Name> due_names;
  std::vector<bool> due(journal_.size(), false);
  for (std::size_t i = journal_.size(); i-- > 0;) {
    const Change& change = journal_[i];
    due[i] = touches(change, due_names) ||
             std::ranges::any_of(change, [&](const NameIs& is) { return is.name.first == directory; });
    if (!due[i]) continue;
    for (const NameIs& is : change) due_names.insert(is.name);
  }
  std::vector<Change> rest;
  for (std::size_t i = 0; i < journal_.size(); ++i) {
    if (due[i]) {
      apply(journal_[i], entries_);
    } else {
      rest.push_back(std::move(journal_[i]));
    }
  }
  journal_ = std::move(rest);
}

std::vector<std::byte> FileTree::surviving_bytes(const Entry& file, Rng& rng, TornTail tail) {
  // A truncation that did not reach the medium leaves the old content.
  if (file.truncated && rng.below(3) == 0) return file.medium_bytes;
  const std::size_t synced = file.truncated ? 0 : file.medium_bytes.size();
  const std::size_t appended = file.bytes.size() - synced;
  // The unsynced bytes are lost wholly, kept wholly, or torn, each often enough to be met with few seeds.
  const std::uint64_t fate = rng.below(4);
  std::size_t kept = rng.below(appended + 1);
  if (fate == 0) kept = 0;
  if (fate == 1) kept = appended;
  std::vector<std::byte> survivors(file.bytes.begin(),
                                   file.bytes.begin() + static_cast<std::ptrdiff_t>(synced + kept));
  if (tail == TornTail::kGarbage) {
    for (std::uint64_t left = rng.below(appended - kept + 1); left > 0; --left) {
      survivors.push_back(static_cast<std::byte>(rng.next_u32() & 0xffU));
    }
  }
  return survivors;
}

void FileTree::copy_survivors(const std::vector<Entry>& medium, Node from, Node to, Rng& rng, TornTail tail) {
  for (const auto& [name, source] : medium[from].medium_names) {
    const Node copy = add(medium[source].directory);
    entries_[to].names[name] = copy;
    entries_[to].medium_names[name] = copy;
    if (medium[source].directory) {
      copy_survivors(medium, source, copy, rng, tail);
    } else {
      entries_[copy].bytes = surviving_bytes(medium[source], rng, tail);
      entries_[copy].medium_bytes = entries_[copy].bytes;
    }
  }
}

FileTree FileTree::after_crash(Rng& rng, TornTail tail) const {
  std::vector<Entry> medium = entries_;
  // The share of changes that survive: from none to all of them.
  const std::uint64_t keep_of_four = rng.below(5);
  std::set<Name> lost;
  for (const Change& change : journal_) {
    if (touches(change, lost) || rng.below(4) >= keep_of_four) {
      for (const NameIs& is : change) lost.insert(is.name);
    } else {
      apply(change, medium);
    }
  }
  FileTree tree;
  tree.copy_survivors(medium, kRoot, kRoot, rng, tail);
  return tree;
}

}  // namespace gossamer::host
