// SPDX-License-Identifier: Apache-2.0
#include "host/posix/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

namespace gossamer::host {
namespace {

std::string scratch(const std::string& name) { return ::testing::TempDir() + "child_process_" + name; }

std::unique_ptr<ChildProcess> shell(const std::string& script, const std::string& output = "/dev/null") {
  auto child = ChildProcess::start({.program = "/bin/sh",
                                    .arguments = {"-c", script},
                                    .output = output,
                                    .environment = {{"GOSSAMER_TEST", "a word"}}});
  EXPECT_TRUE(child.ok()) << child.error().message();
  return *std::move(child);
}

// Looks until the child has ended; only a failure reaches the deadline.
ChildProcess::End wait_for(ChildProcess& child) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!child.end() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(child.end().has_value());
  return child.end().value_or(ChildProcess::End{});
}

// The child has its arguments, the environment with the additions, and an empty input. What it says on either
// stream is in a file for its owner alone. Its exit status is told.
TEST(ChildProcess, RunsAndIsHeard) {
  const std::string output = scratch("heard");
  const auto child = shell("cat; echo \"$GOSSAMER_TEST\"; echo \"$HOME\" | wc -l >&2; exit 3", output);
  const ChildProcess::End end = wait_for(*child);
  EXPECT_EQ(end.status, 3);
  EXPECT_FALSE(end.by_signal);
  EXPECT_GT(end.peak_rss_bytes, 0U);
  std::ifstream file(output);
  const std::string said((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(said, "a word\n1\n");
  struct stat facts{};
  ASSERT_EQ(::stat(output.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

// What is in the place of the child's file goes first: the output of an earlier child, and the link of
// another user of this machine, which leads nowhere then.
TEST(ChildProcess, ItsFileIsNew) {
  const std::string output = scratch("planted");
  const std::string target = scratch("target");
  static_cast<void>(::unlink(output.c_str()));
  std::ofstream(target) << "of another user";
  ASSERT_EQ(::symlink(target.c_str(), output.c_str()), 0);
  const auto text = [](const std::string& path) {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  };
  for (const char* word : {"first", "second"}) {
    wait_for(*shell(std::string("echo ") + word, output));
    EXPECT_EQ(text(output), std::string(word) + "\n");
    EXPECT_EQ(text(target), "of another user");
    struct stat facts{};
    ASSERT_EQ(::lstat(output.c_str(), &facts), 0);
    EXPECT_TRUE(S_ISREG(facts.st_mode));
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  }
}

// A signal that ends the child is told as one, as a shell does.
TEST(ChildProcess, TellsOfASignal) {
  const auto child = shell("kill -TERM $$");
  const ChildProcess::End end = wait_for(*child);
  EXPECT_TRUE(end.by_signal);
  EXPECT_EQ(end.status, 128 + SIGTERM);
}

// The CPU time of the child is known while it runs, and is no less at its end.
TEST(ChildProcess, TellsOfItsTime) {
  const auto child = shell("while :; do :; done");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (child->cpu_seconds() < 0.01 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  const double so_far = child->cpu_seconds();
  EXPECT_GE(so_far, 0.01);
  child->kill();
  EXPECT_GE(wait_for(*child).cpu_seconds, so_far - 0.01);
  EXPECT_EQ(child->cpu_seconds(), child->end()->cpu_seconds);
}

// Destroying the object kills the child, and nothing of it is left.
TEST(ChildProcess, EndsWithItsObject) {
  auto child = shell("read line < /dev/zero");
  const pid_t id = child->id();
  EXPECT_FALSE(child->end().has_value());
  child.reset();
  EXPECT_EQ(::kill(id, 0), -1);
}

// The system kills the child when its parent dies, however that comes: here by kill -9.
TEST(ChildProcess, EndsWithItsParent) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // orphans come to this process
  int ids[2];
  ASSERT_EQ(::pipe(ids), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const std::string output = scratch("started");
    const auto child = shell("echo started; read line < /dev/zero", output);
    const pid_t id = child->id();
    struct stat facts{};
    while (::stat(output.c_str(), &facts) != 0 || facts.st_size == 0) std::this_thread::yield();
    if (::write(ids[1], &id, sizeof id) == sizeof id) ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(ids[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  int status = 0;
  EXPECT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  ::close(ids[0]);
  ::close(ids[1]);
  EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

// What cannot be run is an error here, not a child that fails.
TEST(ChildProcess, RefusesWhatIsNoProgram) {
  const auto child =
      ChildProcess::start({.program = scratch("nothing"), .arguments = {}, .output = "/dev/null"});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().where, scratch("nothing"));
}

// The program that runs is found wherever it lies.
TEST(ChildProcess, KnowsItsOwnProgram) {
  EXPECT_NE(own_program().find("host_posix_test"), std::string::npos) << own_program();
}

}  // namespace
}  // namespace gossamer::host
