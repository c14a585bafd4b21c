// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/contact.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace gossamer::host {
namespace {

// A port of this machine on which something listens.
struct ListeningPort {
  explicit ListeningPort(int backlog) : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0, errno);
    CHECK(::listen(socket.get(), backlog) == 0, errno);
    socklen_t size = sizeof at;
    CHECK(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0, errno);
  }
  [[nodiscard]] Addresses addresses() const {
    return *addresses_of({.host = "127.0.0.1", .port = ntohs(at.sin_port)}, AddressUse::kReach);
  }

  sockaddr_in at{};
  Descriptor socket;
};

// Claim: an address that swallows what is sent to it takes its share of the time, and the next one is reached
// in the rest.
TEST(Contact, DeadAddressLeavesTimeForOthers) {
  const ListeningPort dead(0);
  std::vector<Descriptor> waiting;  // its places are taken, so further openings are dropped
  for (int i = 0; i < 8; ++i) {
    waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int done =
        ::connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&dead.at), sizeof dead.at);
    EXPECT_TRUE(done == 0 || errno == EINPROGRESS) << errno;
  }
  const ListeningPort alive(8);
  Addresses both = dead.addresses();
  ASSERT_EQ(both->ai_next, nullptr);
  both->ai_next = alive.addresses().release();
  const Endpoint name{.host = "name", .port = 1};
  EXPECT_FALSE(connect_to(name, dead.addresses(), Deadline(from_milliseconds(20))).ok());
  const auto reached = connect_to(name, both, Deadline(from_milliseconds(600)));
  ASSERT_TRUE(reached.ok()) << reached.error().message();
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  ASSERT_EQ(::getpeername(reached->get(), reinterpret_cast<sockaddr*>(&peer), &size), 0);
  EXPECT_EQ(peer.sin_port, alive.at.sin_port);
}

}  // namespace
}  // namespace gossamer::host
