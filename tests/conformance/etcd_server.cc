// SPDX-License-Identifier: Apache-2.0
#include "etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/check.h"
#include "host/api/files.h"
#include "host/posix/clock.h"
#include "host/posix/disk.h"
#include "host/posix/etcd_requests.h"
#include "host/system/descriptor.h"
#include "memory_directory.h"

namespace gossamer::host {
namespace {

using nlohmann::json;

// A busy machine's disk may take seconds for etcd's first syncs.
constexpr Duration kStartDeadline = from_seconds(60);

// Whether a socket of this port can be had. It is held from then on.
bool hold(int port, std::vector<Descriptor>& held) {
  Descriptor descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(descriptor.get() >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = ::htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  const bool free = ::bind(descriptor.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  if (free) held.push_back(std::move(descriptor));
  return free;
}

// Two ports that are free now, below those that the system gives to connections (32768 and more, as Linux
// comes). A port of that range is soon taken by other tests. etcd ends with a message if another program is
// quicker.
std::array<int, 2> free_ports() {
  constexpr int kLowest = 10'000;
  constexpr int kPorts = 20'000;
  std::array<int, 2> ports{};
  std::vector<Descriptor> held;
  int next = ::getpid() * 16;  // each test is a process of its own
  for (int& port : ports) {
    do {
      port = kLowest + next++ % kPorts;
    } while (!hold(port, held));
  }
  return ports;
}

}  // namespace

std::string EtcdServer::program() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/etcd").c_str(), X_OK) == 0) return folder + "/etcd";
  }
  return "";
}

Result<std::unique_ptr<EtcdServer>> EtcdServer::start() {
  // The clients of a killed server write to connections that are gone.
  ::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<EtcdServer> server(new EtcdServer());
  if (auto done = server->run(program()); !done.ok()) return done.error();
  const PosixClock clock;
  for (const Instant start = clock.now(); !server->answers();) {
    const bool late = clock.now() - start > kStartDeadline;
    if (late || ::waitpid(server->process_, nullptr, WNOHANG) != 0) {
      PosixDisk disk;
      const auto log = read_text(disk, server->directory_ + "/log");
      const std::string words = log.ok() ? *log : log.error().message();
      return Error{.where = "etcd",
                   .what = late ? "does not answer" : "has ended",
                   .got = words.substr(words.size() - std::min<std::size_t>(words.size(), 1000))};
    }
    server->watch(from_milliseconds(10));
  }
  return server;
}

Result<void> EtcdServer::run(const std::string& program) {
  std::string pattern = memory_directory() + "gossamer_etcd_XXXXXX";
  CHECK(::mkdtemp(pattern.data()) != nullptr, pattern);
  directory_ = pattern;
  const auto [client_port, peer_port] = free_ports();
  client_port_ = client_port;
  const std::string peer = fmt::format("http://127.0.0.1:{}", peer_port);
  const std::vector<std::string> words = {program,
                                          "--data-dir=" + directory_ + "/data",
                                          "--listen-client-urls=" + url(),
                                          "--advertise-client-urls=" + url(),
                                          "--listen-peer-urls=" + peer,
                                          "--initial-advertise-peer-urls=" + peer,
                                          "--initial-cluster=test=" + peer,
                                          "--name=test"};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  auto log = open_descriptor(directory_ + "/log", "cannot open", O_WRONLY | O_CREAT);
  if (!log.ok()) return log.error();
  process_ = ::fork();
  CHECK(process_ >= 0);
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the server never outlives the test
    ::dup2(log->get(), STDOUT_FILENO);
    ::dup2(log->get(), STDERR_FILENO);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  process_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, process_, 0));
  CHECK(process_fd_ >= 0);
  return {};
}

EtcdServer::~EtcdServer() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  ::close(process_fd_);
  std::filesystem::remove_all(directory_);
}

bool EtcdServer::answers() const {
  httplib::Client client(url());
  const auto reply = client.Get("/health");
  return reply && reply->status == 200 && reply->body.find("true") != std::string::npos;
}

void EtcdServer::freeze() {
  CHECK(::kill(process_, SIGSTOP) == 0);
  int status = 0;
  CHECK(::waitpid(process_, &status, WUNTRACED) == process_ && WIFSTOPPED(status), status);
}

void EtcdServer::thaw() { CHECK(::kill(process_, SIGCONT) == 0); }

void EtcdServer::watch(Duration patience) const {
  pollfd ended{.fd = process_fd_, .events = POLLIN, .revents = 0};
  ::poll(&ended, 1, static_cast<int>(patience.milliseconds()));
}

json EtcdServer::ask(const std::string& path, const json& request) const {
  httplib::Client client(url());
  const auto reply = client.Post(path, request.dump(), "application/json");
  EXPECT_TRUE(reply) << path;
  return reply ? json::parse(reply->body) : json();
}

void EtcdServer::depose(const std::string& run) const {
  const json found = ask("/v3/kv/range", {{"key", etcd::to_base64("gossamer/" + run + "/leader")}});
  const json& leader = etcd::only(found);
  if (!leader.is_null()) static_cast<void>(ask("/v3/lease/revoke", {{"ID", etcd::member(leader, "lease")}}));
}

std::vector<std::string> EtcdServer::keys(const std::string& run) const {
  const std::string prefix = "gossamer/" + run + "/";
  const json found = ask("/v3/kv/range", etcd::range_below(prefix, prefix, 0));
  std::vector<std::string> names;
  for (const json& pair : etcd::member(found, "kvs")) {
    names.push_back(etcd::bytes(pair, "key").substr(prefix.size()));
  }
  return names;
}

}  // namespace gossamer::host
