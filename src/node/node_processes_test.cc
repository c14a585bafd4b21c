// SPDX-License-Identifier: Apache-2.0
#include "node/node_processes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "host/api/files.h"
#include "host/posix/clock.h"
#include "host/posix/disk.h"
#include "run/test_machine.h"

namespace gossamer::node {
namespace {

// Processes that write down each start, and then do as a script says, on a clock that only the test moves.
class NodeProcessesTest : public ::testing::Test {
 protected:
  NodeProcessesTest() : root_(::testing::TempDir() + "node_processes_" + std::to_string(getpid())) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ + "/nodes");
  }
  ~NodeProcessesTest() override { std::filesystem::remove_all(root_); }

  void start(const std::string& script, bool starts_again) {
    const std::string program = root_ + "/program";
    ASSERT_TRUE(
        host::replace_file(disk_, program, "#!/bin/sh\necho x >> " + root_ + "/starts\n" + script).ok());
    ASSERT_EQ(chmod(program.c_str(), 0700), 0);
    auto begun = NodeProcesses::start(
        host_,
        {.run = root_, .nodes = 1, .program = program, .at = {}, .token = "t", .starts_again = starts_again});
    ASSERT_TRUE(begun.ok()) << begun.error().message();
    nodes_ = *std::move(begun);
  }
  [[nodiscard]] std::size_t starts() {
    const auto text = host::read_text(disk_, root_ + "/starts");
    return text.ok() ? text->size() / 2 : 0;
  }
  // Looks until the condition holds, or an error is told. Only a failure reaches the deadline.
  Result<void> look_until(bool at_work, const std::function<bool()>& there) {
    const host::PosixClock clock;
    const Instant deadline = clock.now() + from_seconds(60);
    while (!there() && clock.now() < deadline) {
      if (auto good = nodes_->look(at_work); !good.ok()) return good;
      std::this_thread::yield();
    }
    EXPECT_TRUE(there());
    return {};
  }
  [[nodiscard]] bool said(const std::string& part) const { return machine_.said(part); }

  const std::string root_;
  host::PosixDisk disk_;
  run::testing::SimMachine machine_;
  const run::NodeHost host_ = machine_.host_with(disk_);
  std::unique_ptr<NodeProcesses> nodes_;
};

// A node that fails at work is started again, after a wait that doubles while it fails. Nothing is over.
TEST_F(NodeProcessesTest, AFailedNodeIsStartedAgain) {
  start("exit 3\n", true);
  std::size_t count = 1;
  for (const int wait : {1, 2, 4, 8, 16, 32, 60, 60}) {
    const std::string line = "started again in " + std::to_string(wait) + " s: status 3";
    ASSERT_TRUE(look_until(true, [&] { return said(line); }).ok()) << wait;
    machine_.console.text.clear();
    machine_.clock.advance(from_seconds(wait - 0.01));
    ASSERT_TRUE(nodes_->look(true).ok());
    EXPECT_EQ(starts(), count);
    machine_.clock.advance(from_seconds(0.01));
    ++count;
    ASSERT_TRUE(look_until(true, [&] { return starts() == count; }).ok());
  }
}

// One that has worked for a minute counts as new.
TEST_F(NodeProcessesTest, AFailureAfterLongWorkIsTheFirst) {
  start("[ -e " + root_ + "/go ] || { touch " + root_ + "/go; exit 3; }\nwhile [ -e " + root_ +
            "/go ]; do sleep 0.01; done\nexit 3\n",
        true);
  ASSERT_TRUE(look_until(true, [&] { return said("again in 1 s"); }).ok());
  machine_.clock.advance(from_seconds(1));
  ASSERT_TRUE(look_until(true, [&] { return starts() == 2; }).ok());
  machine_.clock.advance(from_seconds(60));
  machine_.console.text.clear();
  std::filesystem::remove(root_ + "/go");
  ASSERT_TRUE(look_until(true, [&] { return said("again in"); }).ok());
  EXPECT_TRUE(said("again in 1 s"));
}

// A node that fails before all are there ends the run, and so does one that is not to be started again.
TEST_F(NodeProcessesTest, AFailureAtTheBeginningEndsTheRun) {
  start("exit 3\n", true);
  const auto early = look_until(false, [] { return false; });
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().kind, ErrorKind::kBadData);
  start("exit 1\n", false);
  EXPECT_FALSE(look_until(true, [] { return false; }).ok());
}

}  // namespace
}  // namespace gossamer::node
