// SPDX-License-Identifier: Apache-2.0
//
// delay_queue --delay NAMESPACE MICROSECONDS [--delay ...]
//
// Holds every packet that a rule of the namespace sends to NFQUEUE 0 for so long, and then lets it go on.
// NAMESPACE is a file such as /run/netns/NAME. Once all queues are bound it writes one line to standard
// output: "ready SCHED_FIFO" or, where that is refused, "ready SCHED_OTHER". Then it works until it is
// killed. tools/lab/lab starts it.
//
// Delay belongs to the receiver. A sender that had to wait would take its own queue
// for the network's and slow down.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "host/posix/clock.h"
#include "tools/lab/delay_line.h"
#include "tools/lab/packet_queue.h"

namespace gossamer::lab {
namespace {

struct Port {
  PacketQueue queue;
  DelayLine line;
};

// Makes wake-ups punctual, because a late one is a delay that was not asked for. The process goes
// ahead of every ordinary one where the system allows it, and timers are not rounded. Returns the name
// of the scheduling that was granted.
const char* hurry() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  const sched_param priority{.sched_priority = 10};
  if (::sched_setscheduler(0, SCHED_FIFO, &priority) == 0) return "SCHED_FIFO";
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, -20));
  return "SCHED_OTHER";
}

// Waits for packets, or until the first one held anywhere is due.
void wait(std::vector<Port>& ports, std::vector<pollfd>& descriptors, const host::Clock& clock) {
  std::optional<Instant> due;
  for (const Port& port : ports) {
    const auto next = port.line.next_due();
    if (next && (!due || *next < *due)) due = next;
  }
  timespec timeout{};
  if (due) {
    const std::int64_t ns = std::max<std::int64_t>((*due - clock.now()).ns, 0);
    timeout = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  const int ready = ::ppoll(descriptors.data(), descriptors.size(), due ? &timeout : nullptr, nullptr);
  CHECK(ready >= 0 || errno == EINTR, errno);
}

// Serves all queues. Returns only with an error.
Result<void> serve(std::vector<Port>& ports, const host::Clock& clock) {
  std::vector<pollfd> descriptors;
  descriptors.reserve(ports.size());
  for (const Port& port : ports)
    descriptors.push_back({.fd = port.queue.descriptor(), .events = POLLIN, .revents = 0});
  std::vector<std::uint32_t> packets;
  for (;;) {
    wait(ports, descriptors, clock);
    for (std::size_t i = 0; i < ports.size(); ++i) {
      Port& port = ports[i];
      if (descriptors[i].revents != 0) {
        packets.clear();
        if (auto read = port.queue.read(packets); !read.ok()) return read;
        const Instant now = clock.now();
        for (const std::uint32_t packet : packets) port.line.hold(packet, now);
      }
      if (const auto last = port.line.release(clock.now())) {
        if (auto accepted = port.queue.accept_up_to(*last); !accepted.ok()) return accepted;
      }
    }
  }
}

Result<void> run(const std::vector<std::pair<std::string, std::int64_t>>& delays) {
  std::vector<Port> ports;
  for (const auto& [path, microseconds] : delays) {
    auto queue = PacketQueue::open(path);
    if (!queue.ok()) return queue.error();
    ports.push_back({.queue = *std::move(queue), .line = DelayLine(Duration{microseconds * 1000})});
  }
  fmt::print("ready {}\n", hurry());
  std::fflush(stdout);
  return serve(ports, host::PosixClock());
}

}  // namespace
}  // namespace gossamer::lab

int main(int argc, char** argv) {
  CLI::App app("Holds the packets of network namespaces for a time (see tools/lab/lab).");
  std::vector<std::pair<std::string, std::int64_t>> delays;
  app.add_option("--delay", delays, "file of the namespace, and microseconds: 0 to 60000000")
      ->required()
      ->type_name("NAMESPACE MICROSECONDS");
  CLI11_PARSE(app, argc, argv);
  for (const auto& [path, microseconds] : delays) {
    if (microseconds < 0 || microseconds > 60'000'000) {
      fmt::print(stderr, "delay_queue: {}: a delay of {} us; expected 0 to 60000000\n", path, microseconds);
      return 2;
    }
  }
  const auto result = gossamer::lab::run(delays);
  fmt::print(stderr, "delay_queue: {}\n", result.error().message());
  return static_cast<int>(result.error().kind);
}
