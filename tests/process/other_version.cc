// SPDX-License-Identifier: Apache-2.0
//
// A peer that speaks only wire version 2, for test_strangers.py. It prints the answer that it gets, one line,
// and ends with the exit status of `gossamer`.
//
//   other_version enroll TOKEN
//       a stranger that shows a token
//   other_version hello HOST:PORT DIR
//       the node whose credentials are in DIR opens a link to its coordinator
//   other_version hello HOST:PORT DIR PEER
//       the same, to another member
//   other_version lead HOST:PORT RUN
//       a coordinator with the credentials in RUN; says "ready" once it listens
#include <fmt/format.h>
#include <gossamer/membership.pb.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "cluster/admission/token.h"
#include "cluster/admission/token_book.h"
#include "cluster/control/view.h"
#include "host/api/endpoint.h"
#include "host/grpc/network.h"
#include "host/posix/clock.h"
#include "host/posix/disk.h"
#include "host/posix/mailbox.h"
#include "net/link/frame.h"
#include "node/admission/credentials.h"
#include "node/admission/enrolling.h"

namespace {

using namespace gossamer;

constexpr cluster::WireRange kWire{.least = 2, .most = 2};
constexpr Duration kPatience{20'000'000'000};
constexpr const char* kProgram = "other_version";

int fail(const Error& error) {
  fmt::print("{}\n", error.message());
  return static_cast<int>(error.kind);
}

int enroll(const std::string& text) {
  const auto token = cluster::decode_token(text);
  if (!token.ok()) return fail(token.error());
  const host::PosixClock clock;
  const auto membership = node::enroll(
      {.token = *token, .wire = kWire, .program = kProgram, .now_seconds = clock.wall_seconds()});
  return membership.ok() ? 0 : fail(membership.error());
}

// Begins as a node. The coordinator takes the node in, as this question carries no version.
Result<Incarnation> begin(const host::Endpoint& at, const node::Membership& membership) {
  membership::BeginAsk ask;
  ask.set_run(membership.run);
  ask.set_name(kProgram);
  ask.set_cores(1);
  ask.set_memory_bytes(1'000'000'000);
  const auto answer = node::ask_once(
      {.at = at,
       .credentials = membership.credentials,
       .question = {.method = "Begin", .body = ask.SerializeAsString(), .timeout = kPatience}});
  if (!answer.ok()) return answer.error();
  membership::BeginAnswer begun;
  if (!begun.ParseFromString(*answer)) return Error{.what = "cannot read the answer to Begin"};
  return Incarnation(begun.incarnation());
}

Slices hello(const node::Membership& membership, Incarnation incarnation) {
  wire::FrameHeader header;
  wire::Hello* const hello = header.mutable_hello();
  hello->set_wire_min(kWire.least);
  hello->set_wire_max(kWire.most);
  hello->set_run(membership.run);
  hello->mutable_from()->set_node(membership.node.value);
  hello->mutable_from()->set_incarnation(incarnation.value);
  hello->set_session(1);
  hello->set_program(kProgram);
  return net::encode_frame(header);
}

// The reason of a refusal, if the other side has answered with one.
std::optional<Error> refusal_in(const host::NetworkEvent& event) {
  if (const auto* const closed = std::get_if<host::Closed>(&event)) return closed->reason;
  const auto* const received = std::get_if<host::Received>(&event);
  if (received == nullptr) return std::nullopt;
  const auto frame = net::decode_frame(received->frame);
  if (!frame.ok()) return frame.error();
  const wire::Refusal& refusal = frame->header.refusal();
  return Error{.kind = refusal.reason() == wire::Refusal::WIRE ? ErrorKind::kRefused : ErrorKind::kFailed,
               .what = refusal.what(),
               .got = refusal.got(),
               .expected = refusal.expected(),
               .fix = refusal.fix()};
}

int say_hello(const host::Endpoint& coordinator, const host::Endpoint& to, const std::string& directory) {
  host::PosixDisk disk;
  const host::PosixClock clock;
  const auto membership = node::load_membership(disk, directory, clock.wall_seconds());
  if (!membership.ok()) return fail(membership.error());
  const auto incarnation = begin(coordinator, *membership);
  if (!incarnation.ok()) return fail(incarnation.error());
  host::Mailbox<host::NetworkEvent> mailbox;
  const auto network = host::make_grpc_network(
      membership->credentials, [&mailbox](host::NetworkEvent event) { mailbox.push(std::move(event)); });
  network->send(network->connect(to, host::Lane::kControl), hello(*membership, *incarnation));
  for (const Instant end = clock.now() + kPatience; clock.now() < end;) {
    for (const host::NetworkEvent& event : mailbox.wait(kPatience))
      if (const auto error = refusal_in(event)) return fail(*error);
  }
  return fail({.what = "no answer"});
}

class Coordinator {
 public:
  Coordinator(node::RunCredentials credentials, const host::Endpoint& at, const std::string& directory)
      : credentials_(std::move(credentials)),
        identity_{
            .run = credentials_.own.run, .authority = credentials_.authority.certificate, .wire = kWire},
        at_(at),
        tokens_(disk_, directory + "/tokens") {
    network_ = host::make_grpc_network(credentials_.own.credentials, [this](const host::NetworkEvent& event) {
      if (const auto* const asked = std::get_if<host::Asked>(&event))
        network_->answer(asked->question, answer(*asked));
      if (const auto* const received = std::get_if<host::Received>(&event)) refuse(received->connection);
    });
  }

  [[nodiscard]] Result<host::Endpoint> listen() { return network_->listen(at_, host::Lane::kControl); }

 private:
  Result<std::string> answer(const host::Asked& asked) {
    if (asked.method == "Lead") return lead().SerializeAsString();
    if (asked.method == "Begin") {
      membership::BeginAnswer answer;
      answer.set_incarnation(1'000'001);
      *answer.mutable_lead() = lead();
      answer.set_beat_ms(100);
      return answer.SerializeAsString();
    }
    const auto now = static_cast<std::int64_t>(clock_.wall_seconds());
    const auto request = cluster::check_enroll(
        asked.body,
        {.run = identity_, .tokens = tokens_, .now = now, .used = [](const std::string&) { return 0; }});
    return request.ok() ? Error{.what = "a version in common is not expected"} : request.error();
  }

  // An answer with a generation later than any of the run's.
  [[nodiscard]] membership::LeadAnswer lead() const {
    membership::LeadAnswer lead;
    lead.set_generation(1'000'000);
    lead.set_incarnation(1'000'000);
    *lead.mutable_listening() =
        cluster::listening_of({.node = cluster::kCoordinatorNode, .control = at_, .bulk = at_});
    *lead.add_coordinators() = lead.listening().control();
    return lead;
  }

  void refuse(host::ConnectionId connection) {
    wire::FrameHeader header;
    wire::Refusal* const refusal = header.mutable_refusal();
    refusal->set_reason(wire::Refusal::WIRE);
    refusal->set_what("no wire version in common");
    refusal->set_got(fmt::format("{} to {}", net::kWireMin, net::kWireMax));
    refusal->set_expected(fmt::format("one of {} to {}", kWire.least, kWire.most));
    network_->send(connection, net::encode_frame(header));
  }

  host::PosixDisk disk_;
  const host::PosixClock clock_;
  const node::RunCredentials credentials_;
  const cluster::RunIdentity identity_;
  const host::Endpoint at_;
  cluster::TokenBook tokens_;
  std::unique_ptr<host::Network> network_;
};

int lead(const host::Endpoint& at, const std::string& directory) {
  host::PosixDisk disk;
  auto credentials = node::load_run_credentials(disk, directory, host::PosixClock().wall_seconds());
  if (!credentials.ok()) return fail(credentials.error());
  Coordinator coordinator(std::move(*credentials), at, directory);
  if (auto listens = coordinator.listen(); !listens.ok()) return fail(listens.error());
  fmt::print("ready\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {  // until the process that started it closes its input
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  const std::span<char*> arguments(words, static_cast<std::size_t>(count));
  const std::string role = count > 2 ? arguments[1] : "";
  if (role == "enroll") return enroll(arguments[2]);
  const auto at = host::parse_endpoint(count > 3 ? arguments[2] : "");
  if (!at.ok()) return fail(at.error());
  if (role == "lead") return lead(*at, arguments[3]);
  const auto to = count > 4 ? host::parse_endpoint(arguments[4]) : at;
  return to.ok() ? say_hello(*at, *to, arguments[3]) : fail(to.error());
}
