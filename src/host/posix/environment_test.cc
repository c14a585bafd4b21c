// SPDX-License-Identifier: Apache-2.0
#include "host/posix/environment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace gossamer::host {
namespace {

// Set, empty and missing variables are three things.
TEST(Environment, ReadsVariables) {
  ASSERT_EQ(::setenv("GOSSAMER_ENVIRONMENT_TEST", "value", 1), 0);
  EXPECT_EQ(environment("GOSSAMER_ENVIRONMENT_TEST"), "value");
  ASSERT_EQ(::setenv("GOSSAMER_ENVIRONMENT_TEST", "", 1), 0);
  EXPECT_EQ(environment("GOSSAMER_ENVIRONMENT_TEST"), "");
  ASSERT_EQ(::unsetenv("GOSSAMER_ENVIRONMENT_TEST"), 0);
  EXPECT_EQ(environment("GOSSAMER_ENVIRONMENT_TEST"), std::nullopt);
}

// Claim: a default sets a variable that is missing, and changes none that is set, be it to nothing.
TEST(Environment, DefaultsChangeNothingThatIsSet) {
  ASSERT_EQ(::unsetenv("GOSSAMER_ENVIRONMENT_TEST"), 0);
  set_environment_default("GOSSAMER_ENVIRONMENT_TEST", "first");
  EXPECT_EQ(environment("GOSSAMER_ENVIRONMENT_TEST"), "first");
  set_environment_default("GOSSAMER_ENVIRONMENT_TEST", "second");
  EXPECT_EQ(environment("GOSSAMER_ENVIRONMENT_TEST"), "first");
  ASSERT_EQ(::setenv("GOSSAMER_ENVIRONMENT_TEST", "", 1), 0);
  set_environment_default("GOSSAMER_ENVIRONMENT_TEST", "third");
  EXPECT_EQ(environment("GOSSAMER_ENVIRONMENT_TEST"), "");
  ASSERT_EQ(::unsetenv("GOSSAMER_ENVIRONMENT_TEST"), 0);
}

// A process that is tied to one core has one core.
TEST(Environment, CoresFollowAffinity) {
  EXPECT_GE(usable_cores(), 1);
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

// A pipe is no terminal and has the default width.
TEST(Environment, PipeIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int saved = ::dup(STDERR_FILENO);
  ASSERT_EQ(::dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
  const Terminal terminal = stderr_terminal();
  ASSERT_EQ(::dup2(saved, STDERR_FILENO), STDERR_FILENO);
  for (const int fd : {saved, ends[0], ends[1]}) ::close(fd);
  EXPECT_FALSE(terminal.is_terminal);
  EXPECT_EQ(terminal.columns, 80);
}

// A terminal says its width, and a width of 0 means unknown.
TEST(Environment, TerminalHasAWidth) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0) GTEST_SKIP() << "needs a pseudo-terminal";
  ASSERT_EQ(::grantpt(master), 0);
  ASSERT_EQ(::unlockpt(master), 0);
  const int slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
  if (slave < 0) GTEST_SKIP() << "needs a pseudo-terminal";
  winsize size{};
  size.ws_col = 123;
  ASSERT_EQ(::ioctl(slave, TIOCSWINSZ, &size), 0);
  const int saved = ::dup(STDERR_FILENO);
  ASSERT_EQ(::dup2(slave, STDERR_FILENO), STDERR_FILENO);
  const Terminal known = stderr_terminal();
  size.ws_col = 0;
  const int resized = ::ioctl(slave, TIOCSWINSZ, &size);
  const Terminal unknown = stderr_terminal();
  ASSERT_EQ(::dup2(saved, STDERR_FILENO), STDERR_FILENO);
  for (const int fd : {saved, slave, master}) ::close(fd);
  EXPECT_TRUE(known.is_terminal);
  EXPECT_EQ(known.columns, 123);
  EXPECT_EQ(resized, 0);
  EXPECT_EQ(unknown.columns, 80);
}

}  // namespace
}  // namespace gossamer::host
