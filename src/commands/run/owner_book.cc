// SPDX-License-Identifier: Apache-2.0
#include "commands/run/owner_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "host/api/files.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kMostFile = std::size_t{64} << 20;
constexpr Duration kLookAgain{1'000'000'000};

}  // namespace

std::optional<LeadBooks> books_of(const cluster::Coordinator* lead) {
  if (lead == nullptr) return std::nullopt;
  std::set<NodeId> heard;
  for (const cluster::MemberFacts& member : lead->members()) {
    if (member.link.up && member.record->state() != membership::JOINING)
      heard.insert(NodeId(member.record->node()));
  }
  return LeadBooks{.view = lead->view(),
                   .holdings = lead->holdings(),
                   .decision = lead->decision(),
                   .marks = lead->marks(),
                   .installed = lead->installed(),
                   .ends = lead->phase() == cluster::Coordinator::Phase::kStopping,
                   .failed = lead->failure().has_value(),
                   .heard = std::move(heard)};
}

// A file that cannot be read is of no use, and no harm: a member that brings a part from before is refused.
OwnerBook::OwnerBook(host::Disk& disk, const LedTraining& training, std::string path)
    : disk_(disk),
      training_(training),
      steps_(training.led_facts().steps),
      path_(std::move(path)),
      aside_([](const std::function<void()>& work, const auto&) { work(); }) {
  const auto text = host::read_text(disk_, path_, kMostFile);
  if (!text.ok() || !book_.ParseFromString(*text)) book_.Clear();
  if (!book_.settled()) unheard_ = last_owners();
  written_->push(0);
}

// Another process may look at the file right after it. The loop waits at most for the book that is being
// written.
void OwnerBook::settle() {
  unheard_.clear();
  if (book_.installs().empty() || book_.settled()) return;
  book_.set_settled(true);
  writing()();
}

void OwnerBook::look(const std::optional<LeadBooks>& books) {
  const bool takes_up = !books_ && books && books->installed != Epoch();
  books_.reset();
  if (!books) return;
  books_.emplace(*books);
  if (books_->marks) committed_ = books_->marks->committed();
  begins_anew_ = begins_anew_ || (books_->installed == Epoch() && !book_.installs().empty());
  // Nobody works by a view that ends the run, as a part of it was lost.
  const bool last = books_->failed && !book_.installs().empty();
  if (books_->installed != Epoch() && books_->installed != noted_ && !last) note_install();
  // While nobody led here, members may have trained on, and have left.
  if (takes_up && !book_.settled()) unheard_ = last_owners();
  for (const NodeId node : books_->heard) unheard_.erase(node);
}

void OwnerBook::note_install() {
  noted_ = books_->installed;
  note_lives();
  std::map<NodeId, wire::OwnerBook::Owner> owners;
  for (const auto& [node, record] : books_->view.members()) {
    owners[node].set_node(node.value);
    owners[node].set_name(record.name());
  }
  for (const auto& [thing, node] : books_->holdings) {
    owners[node].set_node(node.value);
    owners[node].add_things(thing.value);
  }
  wire::OwnerBook::Install install;
  install.set_epoch(noted_.value);
  install.set_decision(books_->decision);
  for (auto& [node, owner] : owners) *install.add_owners() = std::move(owner);
  auto& installs = *book_.mutable_installs();
  if (std::exchange(begins_anew_, false)) {
    installs.Clear();
    book_.set_forgot(true);
  }
  // A lead that takes over in a change has a newer view. Who owns what is that of the same placement.
  const bool same = !installs.empty() && installs.rbegin()->epoch() == install.epoch() &&
                    installs.rbegin()->decision() == install.decision();
  if (same) return;
  unheard_.clear();
  book_.set_settled(false);
  *installs.Add() = std::move(install);
  while (installs.size() > 1 &&
         (static_cast<std::size_t>(installs.size()) > kMostInstalls || book_.ByteSizeLong() > kMostBytes)) {
    installs.DeleteSubrange(0, 1);
    book_.set_forgot(true);
  }
  keep();
}

void OwnerBook::note_lives() {
  std::set<NodeId> known;
  for (const auto& life : book_.first_lives()) known.insert(NodeId(life.node()));
  for (const auto& [node, record] : books_->view.members()) {
    if (known.contains(node)) continue;
    wire::OwnerBook::Life& life = *book_.add_first_lives();
    life.set_node(node.value);
    life.set_incarnation(record.incarnation());
  }
}

bool OwnerBook::lived_before(net::PeerId peer) const {
  return std::ranges::any_of(book_.first_lives(), [&](const auto& life) {
    return NodeId(life.node()) == peer.node && life.incarnation() != peer.incarnation.value;
  });
}

void OwnerBook::keep() {
  aside_(writing(), [](Instant) {});
}

// If it cannot be written, the next lead knows what is in the store.
std::function<void()> OwnerBook::writing() {
  return [&disk = disk_, path = path_, bytes = book_.SerializeAsString(), number = ++copies_,
          written = written_] {
    std::vector<std::uint64_t> newest;
    while (newest.empty()) newest = written->wait(kLookAgain);
    if (newest.front() < number && host::replace_file(disk, path, bytes).ok()) newest.front() = number;
    written->push(newest.front());
  };
}

std::vector<LedTraining::Owned> OwnerBook::owned_by(NodeId node) const {
  std::vector<LedTraining::Owned> owned;
  for (const auto& install : book_.installs()) {
    for (const auto& owner : install.owners()) {
      if (NodeId(owner.node()) != node) continue;
      owned.push_back(
          {.things = {owner.things().begin(), owner.things().end()}, .decision = install.decision()});
    }
  }
  return owned;
}

bool OwnerBook::owns(NodeId node) const {
  return std::ranges::any_of(book_.installs(), [&](const auto& install) {
    return std::ranges::any_of(install.owners(),
                               [&](const auto& owner) { return NodeId(owner.node()) == node; });
  });
}

std::set<NodeId> OwnerBook::last_owners() const {
  std::set<NodeId> nodes;
  if (book_.installs().empty()) return nodes;
  for (const auto& owner : book_.installs().rbegin()->owners()) {
    if (!owner.things().empty()) nodes.insert(NodeId(owner.node()));
  }
  return nodes;
}

bool OwnerBook::knows_name(std::string_view name) const {
  return std::ranges::any_of(book_.installs(), [&](const auto& install) {
    return std::ranges::any_of(install.owners(), [&](const auto& owner) {
      return name == (owner.name().empty() ? fmt::format("node {}", owner.node()) : printable(owner.name()));
    });
  });
}

node::DeliveryRules::Verdict OwnerBook::judge(net::PeerId from, const std::string& name) {
  const auto file = training_.read_delivered(name);
  if (!file) return Refused{"its name says neither whose it is nor of which step"};
  if (file->node != from.node) return Refused{fmt::format("it is node {}'s", file->node.value)};
  if (never_owned(from.node)) return Refused{"it owns no part of the run"};
  if (file->step > steps_ || (file->result && file->step != steps_))
    return Refused{fmt::format("the run has {} steps", steps_.value)};
  // What it has is so old that nobody knows any more what it owned.
  if (!owns(from.node)) return Unneeded{};
  return judge_step(from, *file);
}

// A member that does not serve may have done steps without a coordinator, of which the books know nothing.
// While others serve, its result would be mixed with theirs.
node::DeliveryRules::Verdict OwnerBook::judge_step(net::PeerId from, const File& file) const {
  if (!books_) return Early{};
  if (!file.result && file.step < newest_()) return Unneeded{};
  const auto& marks = books_->marks;
  if (!marks || marks->committed() >= file.step) return Awaited{file.name};
  const bool serves = books_->view.find(from) != nullptr;
  if (!serves && file.result && !books_->view.members().empty()) return Unneeded{};
  if (!serves) return Awaited{file.name};
  // Members are at most a step apart.
  const auto own = own_mark(from.incarnation);
  if (own && own->value + 1 < file.step.value) return Early{.own = true, .former = lived_before(from)};
  // No other member takes over for a lost one any more, so the marks may stay behind.
  if (books_->ends && !file.result && own) return Awaited{file.name};
  return Early{};
}

std::optional<StepNumber> OwnerBook::own_mark(Incarnation incarnation) const {
  std::optional<StepNumber> own;
  for (const cluster::Mark& mark : books_->marks->rows().marks) {
    if (mark.by == incarnation) own = std::max(own.value_or(mark.next), mark.next);
  }
  return own;
}

node::DeliveryRules::Check OwnerBook::check(net::PeerId from, const std::string& name) const {
  const auto file = training_.read_delivered(name);
  if (!file) return [](const std::string&) { return Result<void>(); };
  return [&training = training_, file = *file, owned = owned_by(from.node)](const std::string& path) {
    return training.check_delivered(path, file, owned);
  };
}

}  // namespace gossamer::commands
