// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/door.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "host/posix/blocked_signals.h"

namespace gossamer::host {
namespace {

constexpr std::uint64_t kWakeKey = 0;
constexpr int kEvents = 64;         // that are taken at once
constexpr int kAcceptsAtOnce = 64;  // then others have a turn
constexpr int kRestMs = 50;         // without any descriptor
constexpr std::size_t kReadBytes = std::size_t{16} << 10;

std::optional<Descriptor> reserve_one() {
  Descriptor one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return one.get() < 0 ? std::nullopt : std::optional<Descriptor>(std::move(one));
}

bool out_of_descriptors_now() {
  return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

}  // namespace

Result<std::unique_ptr<Door>> Door::open(Options options, QuestionNumbers& numbers) {
  TlsContext door;
  TlsContext look;
  if (options.credentials) {
    auto made = door_context(*options.credentials);
    if (!made.ok()) return made.error();
    auto made_look = look_context(*options.credentials);
    if (!made_look.ok()) return made_look.error();
    door = *std::move(made);
    look = *std::move(made_look);
  }
  std::unique_ptr<Door> opened(new Door(std::move(options), numbers, std::move(door), std::move(look)));
  if (!opened->start()) return system_error("", "cannot wait for connections", errno);
  return opened;
}

Door::Door(Options options, QuestionNumbers& numbers, TlsContext door, TlsContext look)
    : options_(std::move(options)),
      numbers_(numbers),
      door_context_(std::move(door)),
      look_context_(std::move(look)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reserve_(reserve_one()),
      book_(options_.limits) {}

bool Door::start() {
  if (epoll_.get() < 0 || wake_.get() < 0) return false;
  if (!watch(EPOLL_CTL_ADD, wake_.get(), EPOLLIN, kWakeKey)) return false;
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
  return true;
}

void Door::end() {
  command([this] { ending_ = true; });
  if (thread_.joinable()) thread_.join();
}

bool Door::watch(int operation, int socket, std::uint32_t events, std::uint64_t key) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll_.get(), operation, socket, &event) == 0;
}

void Door::command(std::function<void()> action) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(action));
  }
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
}

void Door::obey() {
  std::uint64_t count = 0;
  static_cast<void>(::read(wake_.get(), &count, sizeof count));
  std::vector<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (const auto& action : commands) action();
}

std::uint64_t Door::serve(Listening listening, Lane lane, HandOver hand_over) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++listeners_given_;
  }
  // A function can be copied, and a descriptor cannot.
  auto shared = std::make_shared<Listening>(std::move(listening));
  command([this, shared, lane, number, hand_over = std::move(hand_over)] {
    for (Descriptor& socket : shared->sockets) {
      const std::uint64_t key = next_key_++;
      const int fd = socket.get();
      listeners_.emplace(key, Listener{lane, hand_over, std::move(socket), number});
      CHECK(watch(EPOLL_CTL_ADD, fd, EPOLLIN, key), errno);
    }
  });
  return number;
}

Result<void> Door::renew(const NetworkCredentials& credentials) {
  auto made = door_context(credentials);
  if (!made.ok()) return made.error();
  // A function can be copied, and a context cannot. Sessions of before keep theirs.
  auto shared = std::make_shared<TlsContext>(*std::move(made));
  command([this, shared] { door_context_ = std::move(*shared); });
  return {};
}

void Door::shown(std::uint64_t listener, const std::string& peer) {
  const auto address = read_peer(peer);
  if (!address || !options_.credentials) return;
  command([this, listener, address = *address] {
    const auto found = handed_.find({listener, address});
    if (found == handed_.end()) return;
    rate_.give_back(host_of(address), clock_.now());
    let_go(found->second);
  });
}

void Door::answer(QuestionId question, Result<std::string> answer) {
  command([this, question, answer = std::move(answer)] {
    const auto found = questions_.find(question);
    if (found != questions_.end()) give(found->second, answer);
  });
}

int Door::patience_ms() const {
  const auto next = sooner(book_.next_over(), rate_.next_turn());
  // A millisecond more, or else the last one would be waited for in a circle.
  const double left = next ? std::max((*next - clock_.now()).milliseconds() + 1, 0.0) : -1;
  if (!resting_) return static_cast<int>(left);
  return left < 0 ? kRestMs : static_cast<int>(std::min<double>(left, kRestMs));
}

void Door::run() {
  while (!ending_) {
    std::array<epoll_event, kEvents> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), kEvents, patience_ms());
    CHECK(count >= 0 || errno == EINTR, errno);
    if (std::exchange(resting_, false)) {
      for (auto& [key, listener] : listeners_)
        static_cast<void>(watch(EPOLL_CTL_MOD, listener.socket.get(), EPOLLIN, key));
    }
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const auto listener = listeners_.find(event.data.u64);
      if (event.data.u64 == kWakeKey) {
        obey();
      } else if (listener != listeners_.end()) {
        accept_some(listener->second);
      } else {
        on_guest(GuestId{event.data.u64}, event.events);
      }
    }
    give_turns();
    for (const auto& [guest, state] : book_.over(clock_.now())) {
      // gRPC's own time-out has ended a handshake by now: a guest that is left has a certificate.
      if (state == DoorBook::State::kHandedOver) {
        let_go(guest);
      } else {
        turn_out(guest);
      }
    }
  }
  listeners_.clear();
  guests_.clear();
}

void Door::accept_some(Listener& listener) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    Descriptor socket(::accept4(listener.socket.get(), reinterpret_cast<sockaddr*>(&from), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() >= 0) {
      welcome(listener, std::move(socket), peer_address(from));
    } else if (out_of_descriptors_now()) {
      return out_of_descriptors(listener);
    } else if (errno == EAGAIN) {
      return;
    }
    // All other errors are those of one connection that is gone.
  }
}

// Makes one descriptor free. The listener is ready still, so its next turn comes at once.
void Door::out_of_descriptors(Listener& listener) {
  if (const auto leaves = book_.make_room()) return turn_out(*leaves);
  // Nobody here can go: the newcomer has to. Its descriptor is that of the reserve.
  reserve_.reset();
  {
    const Descriptor refused(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  if (auto again = reserve_one()) {
    reserve_.emplace(*std::move(again));
    return;
  }
  resting_ = true;
  for (auto& [key, one] : listeners_) static_cast<void>(watch(EPOLL_CTL_MOD, one.socket.get(), 0, key));
}

void Door::welcome(const Listener& listener, Descriptor socket, const PeerAddress& peer) {
  const GuestId id{next_key_++};
  if (!options_.credentials) {
    const int given = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0);
    if (given >= 0) listener.hand_over(given);
    return;
  }
  if (const auto leaves = book_.accept(id, host_of(peer), clock_.now())) turn_out(*leaves);
  // Each new arrival is told once: what has come stays in the socket, and would be told for ever.
  const bool watched = watch(EPOLL_CTL_ADD, socket.get(), EPOLLIN | EPOLLRDHUP | EPOLLET, id.value);
  guests_.emplace(id, Guest{.listener = listener.number, .peer = peer, .socket = std::move(socket)});
  if (!watched) turn_out(id);
}

void Door::on_guest(GuestId id, std::uint32_t events) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  Guest& guest = at->second;
  if (guest.with_grpc) return let_go(id);  // its connection has ended
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return turn_out(id);
  if ((events & EPOLLOUT) != 0) return flush(at);
  // An asker that has closed its side does not wait for an answer.
  if (guest.question || guest.last_word) return turn_out(id);
  if (guest.kind) {  // nothing is read before its turn
    if ((events & EPOLLRDHUP) != 0) turn_out(id);
    return;
  }
  if (guest.session != nullptr) return read_question(at);
  read_hello(at);
}

void Door::read_hello(Guests::iterator at) {
  Guest& guest = at->second;
  std::array<char, HelloReader::kMostBytes> bytes{};
  const ssize_t size = ::recv(guest.socket.get(), bytes.data(), bytes.size(), MSG_PEEK);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return turn_out(at->first);
  if (guest.hello == nullptr) guest.hello = std::make_unique<HelloReader>(look_context_.get());
  const HelloReader::Guest kind = guest.hello->look({bytes.data(), static_cast<std::size_t>(size)});
  switch (kind) {
    case HelloReader::Guest::kUnknown: return;
    case HelloReader::Guest::kNoneOfUs: return turn_out(at->first);
    case HelloReader::Guest::kGrpc:
    case HelloReader::Guest::kAsker: break;
  }
  guest.kind = kind;
  guest.hello.reset();
  const PeerAddress host = host_of(guest.peer);
  if (rate_.take(host, clock_.now())) return begin_handshake(at);
  rate_.wait(host, at->first);
}

// Guests whose turn has come begin.
void Door::give_turns() {
  while (const auto guest = rate_.next(clock_.now())) begin_handshake(guests_.find(*guest));
}

const Door::Listener& Door::listener_of(const Guest& guest) const {
  const auto found =
      std::ranges::find(listeners_, guest.listener, [](const auto& one) { return one.second.number; });
  CHECK(found != listeners_.end(), guest.listener);
  return found->second;
}

void Door::begin_handshake(Guests::iterator at) {
  Guest& guest = at->second;
  if (*std::exchange(guest.kind, std::nullopt) == HelloReader::Guest::kGrpc) return hand_over(at);
  guest.session = std::make_unique<AskSession>(door_context_.get());
  book_.asks(at->first);
  if (!watch(EPOLL_CTL_MOD, guest.socket.get(), EPOLLIN | EPOLLRDHUP, at->first.value)) turn_out(at->first);
}

void Door::hand_over(Guests::iterator at) {
  Guest& guest = at->second;
  const int given = ::fcntl(guest.socket.get(), F_DUPFD_CLOEXEC, 0);
  if (given < 0) return turn_out(at->first);
  static_cast<void>(watch(EPOLL_CTL_MOD, guest.socket.get(), EPOLLRDHUP | EPOLLET, at->first.value));
  book_.handed_over(at->first, clock_.now());
  guest.with_grpc = true;
  handed_[{guest.listener, guest.peer}] = at->first;
  listener_of(guest).hand_over(given);
}

void Door::read_question(Guests::iterator at) {
  Guest& guest = at->second;
  std::array<char, kReadBytes> bytes{};
  const ssize_t size = ::recv(guest.socket.get(), bytes.data(), bytes.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return turn_out(at->first);
  const AskSession::Step step = guest.session->take({bytes.data(), static_cast<std::size_t>(size)});
  guest.output += guest.session->take_output();
  if (step == AskSession::Step::kOver) return turn_out(at->first);  // its alert is no loss
  if (step == AskSession::Step::kAsked) return on_question(at);
  flush(at);
}

void Door::on_question(Guests::iterator at) {
  const GuestId id = at->first;
  Guest& guest = at->second;
  if (listener_of(guest).lane != Lane::kControl) return turn_out(id);
  const DoorBook::Place place = book_.asked(id, clock_.now());
  if (place.leaves) turn_out(*place.leaves);
  if (place.room == DoorBook::Room::kBusy) {
    guest.session->answer(too_busy(""));
    guest.output += guest.session->take_output();
    guest.last_word = true;
    return flush(at);
  }
  guest.question = QuestionId{++numbers_};
  questions_[*guest.question] = id;
  // Nothing more is read: only its end is of interest.
  if (!watch(EPOLL_CTL_MOD, guest.socket.get(), EPOLLRDHUP, id.value)) return turn_out(id);
  options_.sink(Asked{.question = *guest.question,
                      .method = guest.session->question().method,
                      .peer = {},
                      .from = to_string(guest.peer),
                      .body = guest.session->question().body});
  flush(at);
}

void Door::give(GuestId id, const Result<std::string>& answer) {
  const auto at = guests_.find(id);
  CHECK(at != guests_.end());
  Guest& guest = at->second;
  book_.answered(id, clock_.now());
  questions_.erase(*guest.question);
  guest.question.reset();
  guest.session->answer(answer);
  guest.output += guest.session->take_output();
  guest.last_word = true;
  flush(at);
}

// Sends what is there; ends the guest after its last word.
void Door::flush(Guests::iterator at) {
  Guest& guest = at->second;
  while (!guest.output.empty()) {
    const ssize_t sent = ::send(guest.socket.get(), guest.output.data(), guest.output.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) return turn_out(at->first);
    guest.output.erase(0, static_cast<std::size_t>(sent));
  }
  if (guest.output.empty() && guest.last_word) return turn_out(at->first);
  const std::uint32_t reads = guest.last_word || guest.question ? 0U : EPOLLIN;
  const std::uint32_t writes = guest.output.empty() ? 0U : EPOLLOUT;
  static_cast<void>(watch(EPOLL_CTL_MOD, guest.socket.get(), reads | writes | EPOLLRDHUP, at->first.value));
}

void Door::turn_out(GuestId id) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  // A socket that gRPC has ends there, too. Any other goes with its descriptor, once its output has left.
  if (at->second.with_grpc) static_cast<void>(::shutdown(at->second.socket.get(), SHUT_RDWR));
  let_go(id);
}

void Door::let_go(GuestId id) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  const Guest& guest = at->second;
  book_.remove(id);
  rate_.forget(host_of(guest.peer), id);
  const auto handed = handed_.find({guest.listener, guest.peer});
  if (handed != handed_.end() && handed->second == id) handed_.erase(handed);
  if (guest.question) questions_.erase(*guest.question);
  // gRPC may hold the socket still; without this, epoll would go on to tell of it.
  static_cast<void>(watch(EPOLL_CTL_DEL, guest.socket.get(), 0, 0));
  guests_.erase(at);
}

}  // namespace gossamer::host
