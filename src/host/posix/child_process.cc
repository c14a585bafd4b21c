// SPDX-License-Identifier: Apache-2.0
#include "host/posix/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/check.h"
#include "host/system/descriptor.h"

namespace gossamer::host {
namespace {

constexpr int kNotStarted = 127;
constexpr unsigned kPrivate = 0600;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text(*one);
    bool replaced = false;
    for (const auto& [name, value] : added) replaced = replaced || text.starts_with(name + "=");
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

// Runs in the child. Makes only calls that are allowed between fork and exec in a program with threads.
[[noreturn]] void become(pid_t parent, int input, int output, const char* program, char** arguments,
                         char** environment) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotStarted);  // the parent died before
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execve(program, arguments, environment);
  _exit(kNotStarted);
}

// A file of an earlier process goes first, and so does what another user of this machine has put there. A
// device stays.
Result<Descriptor> open_output(const std::string& path) {
  constexpr std::string_view kWhat = "cannot write";
  struct stat there{};
  if (::lstat(path.c_str(), &there) == 0 && S_ISCHR(there.st_mode))
    return open_descriptor(path, kWhat, O_WRONLY | O_NOFOLLOW);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error(path, kWhat, errno);
  return open_descriptor(path, kWhat, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND, kPrivate);
}

}  // namespace

std::string own_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const Options& options) {
  if (::access(options.program.c_str(), X_OK) != 0) return system_error(options.program, "cannot run", errno);
  const auto input = open_descriptor("/dev/null", "cannot open", O_RDONLY);
  if (!input.ok()) return input.error();
  const auto output = open_output(options.output);
  if (!output.ok()) return output.error();
  std::vector<std::string> words = {options.program};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> variables = environment_with(options.environment);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(variables);
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) return system_error(options.program, "cannot start", errno);
  if (id == 0)
    become(parent, input->get(), output->get(), options.program.c_str(), const_cast<char**>(arguments.data()),
           const_cast<char**>(environment.data()));
  return std::unique_ptr<ChildProcess>(new ChildProcess(id));
}

ChildProcess::~ChildProcess() {
  kill();
  collect(0);
}

const std::optional<ChildProcess::End>& ChildProcess::end() {
  collect(WNOHANG);
  return end_;
}

void ChildProcess::kill() {
  if (!end_) ::kill(id_, SIGKILL);
}

double ChildProcess::cpu_seconds() {
  if (end()) return end_->cpu_seconds;
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(id_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void ChildProcess::collect(int options) {
  while (!end_) {
    int status = 0;
    rusage use{};
    const pid_t got = ::wait4(id_, &status, options, &use);
    if (got == 0) return;
    if (got < 0 && errno == EINTR) continue;
    CHECK(got == id_, got, errno);
    const bool by_signal = WIFSIGNALED(status);
    end_ = End{.status = by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
               .by_signal = by_signal,
               .cpu_seconds = seconds_of(use.ru_utime) + seconds_of(use.ru_stime),
               .peak_rss_bytes = static_cast<std::uint64_t>(use.ru_maxrss) * 1024};
  }
}

}  // namespace gossamer::host
