// SPDX-License-Identifier: Apache-2.0
//
// MemberEngine: the base of a member's engine. It follows the lives of the process, and hands on what happens
// in one of them. It keeps what outlives a life: why the member leaves, and why it has failed.
//
// A lost or silent member is nothing wrong: the view will change. Thread rule: the loop thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"

namespace gossamer::engine {

class MemberEngine : public cluster::Engine {
 public:
  void on(const cluster::ProcessEvent& event, Instant now) final;
  void drain(const std::string& reason, Instant now) final;
  [[nodiscard]] std::optional<Error> failure() const final { return failure_; }

 protected:
  // The process outlives the engine.
  explicit MemberEngine(cluster::MemberProcess& process) : process_(process) {}

  // A life has begun. The engine calls Member::ready() once it is prepared to hold things.
  virtual void begin(const cluster::LifeBegun& event, Instant now) = 0;
  // All that belongs to a life is gone. Called before each life, too.
  virtual void end() = 0;
  // The view changes: the engine comes to rest, then calls Member::frozen().
  virtual void freeze(Instant now) = 0;
  // Likewise, and the step that is open may end first.
  virtual void freeze_after_step(Instant now) { freeze(now); }
  // The engine is to go on by Member::installed().
  virtual void install(Instant now) = 0;
  // A peer is lost for good, as an incarnation.
  virtual void lost(net::PeerId, Instant) {}
  // A message of a peer that is not fenced.
  virtual void arrived(const net::Arrived& event, Instant now) = 0;
  // The run ends. The engine saves everything, then calls Member::leave().
  virtual void stop(const std::string& reason, Instant now) { member().leave(reason, now); }
  // The engine has failed in this life. It calls Member::leave_now(): others wait for what it holds.
  virtual void give_up(const std::string& reason, Instant now) { member().leave_now(reason, now); }

  // Leaves the run with the error as its reason, in each later life, too. Nothing else of a life is handed on
  // afterwards.
  void fail(Error error, Instant now);
  // Null between two lives.
  [[nodiscard]] cluster::MemberProcess& process() const { return process_; }
  // Requires a life.
  [[nodiscard]] cluster::Member& member() const { return *process_.member(); }
  [[nodiscard]] bool lives() const { return alive_ && process_.member() != nullptr && !failure_; }
  // Set once the machine is wanted back.
  [[nodiscard]] const std::optional<std::string>& leaving() const { return leaving_; }

 private:
  void on_one(const cluster::LifeBegun& event, Instant now);
  void on_one(const cluster::LifeEnded& event, Instant now);
  void on_one(const cluster::BeginFailed&, Instant) {}
  void on_one(const cluster::MemberEvent& event, Instant now);
  void on_one(const net::Arrived& event, Instant now);

  cluster::MemberProcess& process_;
  bool alive_ = false;  // between begin() and end()
  std::optional<std::string> leaving_;
  std::optional<Error> failure_;
};

}  // namespace gossamer::engine
