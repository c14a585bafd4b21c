// SPDX-License-Identifier: Apache-2.0
//
// SimProcess: a process on a simulated machine, mostly one of its own. It has a Network, a clock that runs
// slightly wrong, and one timer. It can be stopped (SIGSTOP) and continued. It is killed by being destroyed.
//
// A program derives from it, and is told of events and of its timer. Thread rule: the simulation's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "host/sim/internet.h"
#include "host/sim/timeline.h"

namespace gossamer::simulation {

// Local time = offset + rate * simulated time.
struct ClockError {
  Duration offset;
  double rate = 1;
};

// Called with a machine and its event, for people that replay a seed. May be empty.
using Trace = std::function<void(const std::string& who, const std::string& what)>;

class SimProcess {
 public:
  // `name` is that of its machine, or of a process beside others on the machine `where`.
  SimProcess(host::Timeline& timeline, host::SimInternet& internet, std::string name, std::string where,
             const std::string& certificate, ClockError clock);
  virtual ~SimProcess();
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;

  [[nodiscard]] const std::string& machine() const { return machine_; }
  // The machine of the internet on which it runs.
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] bool has_own_machine() const { return where_ == machine_; }
  [[nodiscard]] host::Network& network() { return *network_; }
  [[nodiscard]] Instant now() const;

  void pause();
  void resume();
  [[nodiscard]] bool paused() const { return paused_; }
  // Runs the action after a time, unless the process has ended. If it is stopped then, the action runs later.
  void after(Duration delay, std::function<void()> action);

 protected:
  virtual void on_network(host::NetworkEvent event) = 0;
  virtual void on_timer() = 0;
  // The process was stopped and goes on. Called before what came meanwhile is told.
  virtual void on_resumed() {}
  // Sets the timer, in place of the time set before.
  void arm(std::optional<Instant> local);
  [[nodiscard]] host::Timeline& timeline() { return timeline_; }
  // Stops all events. For the destructor of the derived class.
  void silence() { network_.reset(); }

 private:
  void run(std::function<void()> action);
  [[nodiscard]] Instant global(Instant local) const;

  host::Timeline& timeline_;
  host::SimInternet& internet_;
  const std::string machine_;
  const std::string where_;
  const ClockError clock_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool paused_ = false;
  std::vector<std::function<void()>> held_;
  std::optional<Instant> armed_;
  std::unique_ptr<host::Network> network_;
};

}  // namespace gossamer::simulation
