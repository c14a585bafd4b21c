// SPDX-License-Identifier: Apache-2.0
//
// OwnerBook: the books by which a lead asks its members for files (docs/protocols/delivery.md). They are the
// lead's own. They say which member owned what by the views that were installed. They also say how far the
// steps are by the marks, and which checkpoint is whole. What a member says of itself counts only against it.
//
// Owners of the last views are kept in a file of the run. So a member that left without a coordinator can
// bring its part to the next one.
//
// Thread rule: the loop thread, but for what check() returns. The file is written aside, and by settle().
#pragma once

#include <gossamer/delivery.pb.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "cluster/control/books.h"
#include "cluster/control/coordinator.h"
#include "cluster/control/records.h"
#include "cluster/control/view.h"
#include "commands/engine/training.h"
#include "host/api/disk.h"
#include "host/posix/mailbox.h"
#include "node/files/delivery_rules.h"
#include "node/files/file_exchange.h"

namespace gossamer::commands {

// The books of a lead, which outlive this value.
struct LeadBooks {
  const cluster::View& view;
  const cluster::HoldingMap& holdings;
  const std::string& decision;  // for the view that is installed
  const std::optional<cluster::MarkLedger>& marks;
  Epoch installed;
  bool ends = false;            // members are told to leave
  bool failed = false;          // the view that is installed ends the run: a part was lost
  std::set<NodeId> heard = {};  // members of the view that are there
};

// Null: there are none.
[[nodiscard]] std::optional<LeadBooks> books_of(const cluster::Coordinator* lead);

class OwnerBook final : public node::DeliveryRules {
 public:
  // Views that are remembered, and bytes of all of them.
  static constexpr std::size_t kMostInstalls = 16;
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;

  // Reads the file at `path`, if there is one. Disk and training outlive it.
  OwnerBook(host::Disk& disk, const LedTraining& training, std::string path);

  // Gives the books of this lead, before each message and at each tick; nothing when it ends.
  void look(const std::optional<LeadBooks>& books);
  // The newest checkpoint that is whole, in this fleet.
  void follow_checkpoints(std::function<StepNumber()> newest) { newest_ = std::move(newest); }
  void keep_by(node::Aside aside) { aside_ = std::move(aside); }

  // Whether the node owned something, or served, by one of the last views.
  [[nodiscard]] bool owns(NodeId node) const;
  // Whether it owned nothing by any view of the run. False, where views are not known any more.
  [[nodiscard]] bool never_owned(NodeId node) const { return !owns(node) && !book_.forgot(); }
  // Nodes that owned something by the last view.
  [[nodiscard]] std::set<NodeId> last_owners() const;
  // Those of them that no lead has heard since this one took the fleet up. They may have trained on while
  // nobody led, and left with newer steps than any checkpoint. None, once the fleet has gone on without them.
  [[nodiscard]] const std::set<NodeId>& unheard() const { return unheard_; }
  // The fleet of the last view has ended, and its steps are in checkpoints or lost.
  void settle();
  // Whether a member of one of the last views has that name.
  [[nodiscard]] bool knows_name(std::string_view name) const;
  // All steps before it are done by the marks. Nothing: there are no marks, or they are not known yet.
  [[nodiscard]] const std::optional<StepNumber>& committed() const { return committed_; }

  [[nodiscard]] Verdict judge(net::PeerId from, const std::string& name) override;
  [[nodiscard]] Check check(net::PeerId from, const std::string& name) const override;

 private:
  using File = LedTraining::DeliveredFile;

  void note_install();
  void keep();
  // Writes the book as it is now, unless a newer one is in the file by then. On any thread.
  [[nodiscard]] std::function<void()> writing();
  [[nodiscard]] std::vector<LedTraining::Owned> owned_by(NodeId node) const;
  [[nodiscard]] Verdict judge_step(net::PeerId from, const File& file) const;
  void note_lives();
  // Whether a view had an earlier life of this node, which may have written files.
  [[nodiscard]] bool lived_before(net::PeerId peer) const;
  [[nodiscard]] std::optional<StepNumber> own_mark(Incarnation incarnation) const;

  host::Disk& disk_;
  const LedTraining& training_;
  const StepNumber steps_;  // of the run
  const std::string path_;
  std::optional<LeadBooks> books_;
  std::function<StepNumber()> newest_ = [] { return StepNumber(); };
  node::Aside aside_;
  Epoch noted_;
  // This fleet has no view yet, and the book has those of the one before. Once it has one, a file of that
  // fleet would be mixed with its own of the same step.
  bool begins_anew_ = false;
  std::optional<StepNumber> committed_;
  std::set<NodeId> unheard_;
  wire::OwnerBook book_;
  std::uint64_t copies_ = 0;  // of the book, for its file
  // The number of the newest one that is in the file. A thread takes it, may write then, and puts it back.
  std::shared_ptr<host::Mailbox<std::uint64_t>> written_ = std::make_shared<host::Mailbox<std::uint64_t>>();
};

}  // namespace gossamer::commands
