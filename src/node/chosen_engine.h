// SPDX-License-Identifier: Apache-2.0
//
// ChosenEngine makes the engine that the run's configuration names, and passes everything on to it. A
// coordinator hands its configuration to each member. The first line has the engine's name and the program
// that wrote it, such as "sparse gossamer 0.1.0\n". The rest belongs to that engine. A run's configuration
// stays the same for all of its life.
//
// Thread rule: the loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/control/engine.h"

namespace gossamer::node {

// Makes the configuration for Coordinator::Options. `engine` is one word.
[[nodiscard]] std::string engine_configuration(std::string_view engine, std::string_view program,
                                               std::string_view configuration);

class ChosenEngine final : public cluster::Engine {
 public:
  struct Kind {
    std::string name;
    std::function<std::unique_ptr<cluster::Engine>()> make;
  };

  // The process outlives this engine. `program` is this node's own.
  ChosenEngine(cluster::MemberProcess& process, std::vector<Kind> kinds, std::string program)
      : process_(process), kinds_(std::move(kinds)), program_(std::move(program)) {}

  void on(const cluster::ProcessEvent& event, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override;
  void drain(const std::string& reason, Instant now) override;
  [[nodiscard]] std::optional<Error> failure() const override;
  [[nodiscard]] Work take_work() override;
  void worked(Instant now) override;
  [[nodiscard]] std::vector<std::string> take_remarks() override;
  [[nodiscard]] std::vector<CounterSample> counters() const override;

 private:
  void begin(const cluster::LifeBegun& event, Instant now);
  [[nodiscard]] Result<std::unique_ptr<cluster::Engine>> choose(std::string_view first_line) const;

  cluster::MemberProcess& process_;
  const std::vector<Kind> kinds_;
  const std::string program_;
  std::unique_ptr<cluster::Engine> chosen_;  // null before the first life
  std::optional<std::string> leaving_;
  std::optional<Error> failure_;
};

}  // namespace gossamer::node
