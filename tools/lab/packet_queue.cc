// SPDX-License-Identifier: Apache-2.0
#include "tools/lab/packet_queue.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>

#include "base/check.h"

namespace gossamer::lab {
namespace {

constexpr std::uint16_t kQueue = 0;
constexpr std::uint32_t kLongestQueue = 1 << 20;   // packets: 1.5 GB on the way to one node
constexpr int kReceiveBytes = 64 << 20;            // of numbers that wait to be read
constexpr int kReadsAtOnce = 64;                   // then the other queues get their turn
constexpr std::size_t kLongestMessage = 8192;      // the kernel's, without payload: some 200 bytes
constexpr std::size_t kAlignment = NLMSG_ALIGNTO;  // of messages and of attributes alike

static_assert(NLMSG_ALIGNTO == NLA_ALIGNTO);

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::uint16_t message_type(int kind) { return static_cast<std::uint16_t>(NFNL_SUBSYS_QUEUE << 8 | kind); }

Error failure(const std::string& where, const std::string& what, int error_number) {
  return Error{.where = where,
               .what = what + ": " + std::generic_category().message(error_number),
               .fix = "`lab check` says what this machine lacks"};
}

// A request under construction: header, nfgenmsg, attributes.
class Message {
 public:
  Message(int kind, std::uint16_t flags) {
    header_.nlmsg_type = message_type(kind);
    header_.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    append(header_);  // its length is filled in by bytes()
    append(nfgenmsg{.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(kQueue)});
  }

  template <class Value>
  Message& add(std::uint16_t type, const Value& value) {
    append(nlattr{.nla_len = static_cast<std::uint16_t>(sizeof(nlattr) + sizeof(Value)), .nla_type = type});
    append(value);
    return *this;
  }

  [[nodiscard]] std::span<const std::byte> bytes() {
    header_.nlmsg_len = static_cast<std::uint32_t>(size_);
    std::memcpy(bytes_.data(), &header_, sizeof(header_));
    return {bytes_.data(), size_};
  }

 private:
  template <class Value>
  void append(const Value& value) {
    CHECK(size_ + aligned(sizeof(Value)) <= bytes_.size(), size_, sizeof(Value));
    std::memcpy(bytes_.data() + size_, &value, sizeof(Value));
    size_ += aligned(sizeof(Value));
  }

  nlmsghdr header_{};
  std::array<std::byte, 256> bytes_{};
  std::size_t size_ = 0;
};

// The record at the front of `bytes`, without what follows it in the same block.
template <class Record>
Record load(std::span<const std::byte> bytes) {
  CHECK(bytes.size() >= sizeof(Record), bytes.size());
  Record record{};
  std::memcpy(&record, bytes.data(), sizeof(Record));
  return record;
}

// Cuts the first block, header and body, off `rest`. Header has its own length in the member `length`.
// Nothing at the end, or where a length makes no sense.
template <class Header, class Length>
std::optional<std::span<const std::byte>> take(std::span<const std::byte>& rest, Length Header::* length) {
  if (rest.size() < sizeof(Header)) return std::nullopt;
  const std::size_t size = load<Header>(rest).*length;
  if (size < sizeof(Header) || size > rest.size()) return std::nullopt;
  const std::span<const std::byte> block = rest.first(size);
  rest = rest.subspan(std::min(aligned(size), rest.size()));
  return block;
}

// The packet's number in one message of the kernel; nothing in messages about anything else.
std::optional<std::uint32_t> packet_number(std::span<const std::byte> message) {
  constexpr std::size_t kHead = sizeof(nlmsghdr) + sizeof(nfgenmsg);
  if (load<nlmsghdr>(message).nlmsg_type != message_type(NFQNL_MSG_PACKET) || message.size() < kHead)
    return std::nullopt;
  std::span<const std::byte> attributes = message.subspan(kHead);
  while (const auto attribute = take(attributes, &nlattr::nla_len)) {
    if ((load<nlattr>(*attribute).nla_type & NLA_TYPE_MASK) != NFQA_PACKET_HDR) continue;
    const std::span<const std::byte> value = attribute->subspan(sizeof(nlattr));
    if (value.size() < sizeof(nfqnl_msg_packet_hdr)) return std::nullopt;
    return ntohl(load<nfqnl_msg_packet_hdr>(value).packet_id);
  }
  return std::nullopt;
}

// Sends a message. Returns 0 or errno.
int send(int fd, Message& message) {
  const std::span<const std::byte> bytes = message.bytes();
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  for (;;) {
    const ssize_t sent = ::sendto(fd, bytes.data(), bytes.size(), 0,
                                  reinterpret_cast<const sockaddr*>(&kernel), sizeof(kernel));
    if (sent >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

// Sends a request with NLM_F_ACK on a blocking socket and waits for its answer; 0 or errno.
int ask(int fd, Message& message) {
  if (const int error_number = send(fd, message)) return error_number;
  std::array<std::byte, kLongestMessage> buffer{};
  for (;;) {
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno != EINTR) return errno;
    if (got < 0) continue;
    std::span<const std::byte> rest(buffer.data(), static_cast<std::size_t>(got));
    while (const auto answer = take(rest, &nlmsghdr::nlmsg_len)) {
      if (load<nlmsghdr>(*answer).nlmsg_type == NLMSG_ERROR)
        return -load<int>(answer->subspan(sizeof(nlmsghdr)));
    }
  }
}

// A netlink socket of the namespace, or -errno. A socket stays in the namespace where it was made.
int socket_in(int target) {
  const int home = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (home < 0) return -errno;
  int fd = -1;
  int error_number = 0;
  if (::setns(target, CLONE_NEWNET) != 0) {
    error_number = errno;
  } else {
    fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    error_number = errno;
    const int back = ::setns(home, CLONE_NEWNET);
    CHECK(back == 0, errno);
  }
  ::close(home);
  return fd >= 0 ? fd : -error_number;
}

}  // namespace

Result<PacketQueue> PacketQueue::open(const std::string& namespace_path) {
  const int target = ::open(namespace_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (target < 0) return failure(namespace_path, "cannot open the network namespace", errno);
  const int fd = socket_in(target);
  ::close(target);
  if (fd < 0) return failure(namespace_path, "cannot open a netfilter socket in the network namespace", -fd);
  PacketQueue queue(fd, namespace_path);
  if (auto bound = queue.bind(); !bound.ok()) return bound.error();
  return queue;
}

Result<void> PacketQueue::bind() {
  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  if (::bind(fd_, reinterpret_cast<const sockaddr*>(&self), sizeof(self)) != 0) {
    return failure(where_, "cannot bind a netfilter socket", errno);
  }
  Message claim(NFQNL_MSG_CONFIG, NLM_F_ACK);
  claim.add(NFQA_CFG_CMD,
            nfqnl_msg_config_cmd{.command = NFQNL_CFG_CMD_BIND, ._pad = 0, .pf = htons(AF_INET)});
  if (const int error_number = ask(fd_, claim))
    return failure(where_, "cannot bind packet queue 0", error_number);

  Message settings(NFQNL_MSG_CONFIG, NLM_F_ACK);
  settings.add(NFQA_CFG_PARAMS, nfqnl_msg_config_params{.copy_range = 0, .copy_mode = NFQNL_COPY_META})
      .add(NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_GSO))
      .add(NFQA_CFG_MASK, htonl(NFQA_CFG_F_GSO))
      .add(NFQA_CFG_QUEUE_MAXLEN, htonl(kLongestQueue));
  if (const int error_number = ask(fd_, settings)) {
    return failure(where_, "cannot set up packet queue 0", error_number);
  }
  // A busy host may let numbers pile up. There is room for them, and a lost number is a
  // lost packet rather than an error.
  const int on = 1;
  if (::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof(kReceiveBytes)) != 0 ||
      ::setsockopt(fd_, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on)) != 0 ||
      ::fcntl(fd_, F_SETFL, O_NONBLOCK) != 0) {
    return failure(where_, "cannot set up a netfilter socket", errno);
  }
  return {};
}

PacketQueue::~PacketQueue() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> PacketQueue::read(std::vector<std::uint32_t>& packets) {
  std::array<std::byte, kLongestMessage> buffer;
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got < 0) return failure(where_, "cannot read from the packet queue", errno);
    std::span<const std::byte> rest(buffer.data(), static_cast<std::size_t>(got));
    while (const auto message = take(rest, &nlmsghdr::nlmsg_len)) {
      if (const auto packet = packet_number(*message)) packets.push_back(*packet);
    }
  }
  return {};
}

Result<void> PacketQueue::accept_up_to(std::uint32_t packet) {
  // No answer is asked for. One comes where the packets have gone with their
  // device, and read() passes over it.
  Message verdict(NFQNL_MSG_VERDICT_BATCH, 0);
  verdict.add(NFQA_VERDICT_HDR, nfqnl_msg_verdict_hdr{.verdict = htonl(NF_ACCEPT), .id = htonl(packet)});
  if (const int error_number = send(fd_, verdict)) {
    return failure(where_, "cannot release packets", error_number);
  }
  return {};
}

}  // namespace gossamer::lab
