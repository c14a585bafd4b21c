// SPDX-License-Identifier: Apache-2.0
//
// AnewStore: the store of a run that begins anew from a step, with all that a run keeps for ever. The first
// load gives the entries as they then are to be, and the first commit writes them with its own changes:
//
//   stay      the run's id, numbers that were given to nodes and lives, epochs, tokens, and nodes that they
//   let in are gone  the members, as fenced, and all that they held, claimed and had done; the word that the
//   run ends
//
// So a node's certificate and a token are good afterwards, and no number is given twice. A member of before
// that still lives learns that it is fenced, and comes again.
//
// Until the first commit has succeeded the run is as it was, or some entries of its members' work are gone.
// Then it can begin anew again, and not be led on. Thread rule: as for Store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/store.h"

namespace gossamer::node {

class AnewStore final : public host::Store {
 public:
  struct Begin {
    StepNumber step;           // all steps before it are done
    std::uint64_t tracks = 0;  // of the run from now on
  };
  AnewStore(std::unique_ptr<host::Store> store, const Begin& begin)
      : store_(std::move(store)), begin_(begin) {}

  [[nodiscard]] Result<std::optional<Generation>> campaign(const host::Candidate& self) override {
    return store_->campaign(self);
  }
  [[nodiscard]] Result<void> keep() override { return store_->keep(); }
  [[nodiscard]] Duration keep_every() const override { return store_->keep_every(); }
  [[nodiscard]] std::optional<Duration> lead_time() const override { return store_->lead_time(); }
  [[nodiscard]] Result<void> resign() override { return store_->resign(); }
  [[nodiscard]] Result<std::optional<host::LeaderRecord>> leader() override { return store_->leader(); }
  // kBadData for entries that cannot be read.
  [[nodiscard]] Result<std::vector<host::Entry>> load() override;
  [[nodiscard]] Result<void> commit(std::span<const host::Change> changes) override;

 private:
  [[nodiscard]] Result<void> remove(std::vector<host::Change>& removals);

  const std::unique_ptr<host::Store> store_;
  const Begin begin_;
  std::vector<host::Change> changes_;  // that the first commit makes before its own
  bool begun_ = false;
};

}  // namespace gossamer::node
