// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/stranger_talk.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "host/posix/door/ask_messages.h"
#include "host/posix/door/frame_reader.h"
#include "host/system/addresses.h"

namespace gossamer::host {
namespace {

constexpr std::size_t kTakenAtOnce = std::size_t{16} << 10;

Error no_tls(const Endpoint& at, std::string got) {
  return {.where = to_string(at),
          .what = "no TLS there",
          .got = std::move(got),
          .fix = "look whether host and port are the coordinator's, and whether the run uses TLS"};
}

Error question_failed(const Endpoint& at, const std::string& why) {
  return {.where = to_string(at),
          .what = "the question failed: " + why,
          .fix = "look whether the coordinator runs, and whether this is the port of its join line"};
}

}  // namespace

StrangerTalk::StrangerTalk(SSL_CTX* context, Descriptor socket, Other other)
    : other_(std::move(other)), socket_(std::move(socket)), tls_(TlsSession::connect(context, other_.host)) {}

bool StrangerTalk::send_all(const Deadline& deadline) {
  std::string output = tls_.take_output();
  while (!output.empty()) {
    const ssize_t sent = ::send(socket_.get(), output.data(), output.size(), MSG_NOSIGNAL);
    if (sent > 0) output.erase(0, static_cast<std::size_t>(sent));
    if (sent >= 0 || errno == EINTR) continue;
    // A server that has closed may have said why: the next read tells.
    if (errno != EAGAIN) return true;
    if (!deadline.wait(socket_.get(), POLLOUT)) return false;
  }
  return true;
}

StrangerTalk::Turn StrangerTalk::take_turn(const Deadline& deadline) {
  if (!send_all(deadline) || !deadline.wait(socket_.get(), POLLIN)) return Turn::kLate;
  std::array<char, kTakenAtOnce> bytes{};
  const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return Turn::kGoOn;
  if (size <= 0) return Turn::kClosed;
  tls_.take({bytes.data(), static_cast<std::size_t>(size)}, said_);
  return Turn::kGoOn;
}

Result<void> StrangerTalk::shake_hands(const Deadline& deadline) {
  while (tls_.state() == TlsSession::State::kShaking) {
    switch (take_turn(deadline)) {
      case Turn::kGoOn: break;
      case Turn::kLate: return no_tls(other_.at, "no answer in time");
      case Turn::kClosed: return no_tls(other_.at, "the connection was closed");
    }
  }
  if (tls_.state() == TlsSession::State::kOpen) return {};
  static_cast<void>(send_all(deadline));  // the alert, so that the other end need not wait
  return no_tls(other_.at, tls_.fault());
}

std::optional<Result<std::string>> StrangerTalk::ask(const std::string& method, const std::string& body,
                                                     const Deadline& deadline) {
  tls_.say(framed(to_bytes({.method = method, .body = body})));
  FrameReader frame(kMostAnswerBytes);
  for (;;) {
    const FrameReader::State state = frame.take(std::exchange(said_, {}));
    if (state == FrameReader::State::kWhole) return read_answer(frame.message(), to_string(other_.at));
    const bool broken = state == FrameReader::State::kBroken || tls_.state() == TlsSession::State::kBroken;
    if (broken) return question_failed(other_.at, "the answer is broken");
    if (tls_.state() == TlsSession::State::kEnded) return question_failed(other_.at, "there was no answer");
    const Turn turn = take_turn(deadline);
    if (turn == Turn::kLate) return std::nullopt;
    if (turn == Turn::kClosed) return question_failed(other_.at, "the connection was closed");
  }
}

Result<std::string> ask_as_stranger(const Endpoint& to, const Question& question,
                                    const NetworkCredentials& credentials, int sign) {
  const Deadline deadline(question.timeout, sign);
  const Result<Addresses> addresses = addresses_of(to, AddressUse::kReach);
  if (!addresses.ok()) return addresses.error();
  const auto context = stranger_context(credentials);
  if (!context.ok()) return context.error();
  Result<Descriptor> socket = connect_to(to, *addresses, deadline);
  if (!socket.ok()) return socket.error();
  StrangerTalk talk(
      context->get(), *std::move(socket),
      {.at = to, .host = question.to.empty() ? kCertificateHost : certificate_host(question.to)});
  if (auto shaken = talk.shake_hands(deadline); !shaken.ok()) return shaken.error();
  const auto answer = talk.ask(question.method, question.body, deadline);
  return answer ? *answer : no_answer(to_string(to), question.method, question.timeout);
}

}  // namespace gossamer::host
