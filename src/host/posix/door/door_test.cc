// SPDX-License-Identifier: Apache-2.0
//
// The door over real sockets of this machine, and its parts over bytes.
#include "host/posix/door/door.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/grpc/certificates.h"
#include "host/posix/door/stranger_talk.h"
#include "host/posix/mailbox.h"
#include "host/system/addresses.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;
using Guest = HelloReader::Guest;

constexpr DoorLimits kAmple{.unread = 500, .unread_of_host = 400, .questions = 50, .questions_of_host = 40};
constexpr int kPatienceMs = 20'000;  // only a failure waits so long

const NetworkCredentials& run_credentials() {
  static const NetworkCredentials made = [] {
    const Validity validity{.now_seconds = PosixClock().wall_seconds(), .days = 1};
    const KeyAndCertificate authority = *make_authority("test", validity);
    const KeyAndRequest own = *make_request();
    return NetworkCredentials{.authority = authority.certificate,
                              .certificate = *sign_request(authority, own.request, "node-1", validity),
                              .key = own.key};
  }();
  return made;
}
NetworkCredentials stranger() {
  return {.authority = run_credentials().authority, .certificate = {}, .key = {}};
}

// A client's first bytes, which offer these protocols, each with its length before it.
std::string hello_with(const std::string& protocols) {
  const auto context = stranger_context(stranger());
  EXPECT_TRUE(context.ok());
  EXPECT_EQ(SSL_CTX_set_alpn_protos(context->get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                                    static_cast<unsigned>(protocols.size())),
            0);
  return TlsSession::connect(context->get(), kCertificateHost).take_output();
}

Guest look_at(const std::string& bytes) {
  static const TlsContext context = *look_context(run_credentials());
  HelloReader reader(context.get());
  return reader.look(bytes);
}

// The protocol that is offered decides, ours before gRPC's. A hello without one, or with others alone, is of
// no use here.
TEST(HelloReader, Protocols) {
  const std::string ask = "\x0egossamer-ask/1";
  EXPECT_EQ(look_at(hello_with(ask)), Guest::kAsker);
  EXPECT_EQ(look_at(hello_with("\x02h2")), Guest::kGrpc);
  EXPECT_EQ(look_at(hello_with("\x02h2" + ask)), Guest::kAsker);
  EXPECT_EQ(look_at(hello_with("\x08http/1.1\x02h2")), Guest::kGrpc);
  EXPECT_EQ(look_at(hello_with("\x08http/1.1")), Guest::kNoneOfUs);
  EXPECT_EQ(look_at(hello_with("")), Guest::kNoneOfUs);
}

// Any part of a hello asks for more, and the rest then decides, however it is cut.
TEST(HelloReader, AnyCut) {
  const std::string hello = hello_with("\x02h2");
  for (std::size_t cut = 1; cut < hello.size(); ++cut) {
    static const TlsContext context = *look_context(run_credentials());
    HelloReader reader(context.get());
    ASSERT_EQ(reader.look(hello.substr(0, cut)), Guest::kUnknown) << cut;
    ASSERT_EQ(reader.look(hello), Guest::kGrpc) << cut;
  }
}

// Other bytes are told at once, and a hello that does not end within a record is none.
TEST(HelloReader, NoHello) {
  EXPECT_EQ(look_at("GET / HTTP/1.1\r\n\r\n"), Guest::kNoneOfUs);
  EXPECT_EQ(look_at("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Guest::kNoneOfUs);
  EXPECT_EQ(look_at(std::string(4096, '\0')), Guest::kNoneOfUs);
  // A record of 16 KiB that holds the begin of a longer hello.
  std::string endless("\x16\x03\x01\x40\x00\x01\x00\xff\xff\x03\x03", 11);
  endless.resize(HelloReader::kMostBytes, 'x');
  EXPECT_EQ(look_at(endless), Guest::kNoneOfUs);
}

// A question and its answer go through whole, however their bytes are cut on the way.
TEST(AskSession, AnyCut) {
  const TlsContext door = *door_context(run_credentials());
  const TlsContext context = *stranger_context(stranger());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 20}) {
    AskSession session(door.get());
    TlsSession asker = TlsSession::connect(context.get(), "node-1.gossamer");
    const AskMessage question{.method = "Enroll", .body = std::string(5'000, 'q')};
    std::string said;
    std::string up = asker.take_output();
    AskSession::Step step = AskSession::Step::kMore;
    bool asked = false;
    while (step == AskSession::Step::kMore) {
      ASSERT_FALSE(up.empty());
      step = session.take(up.substr(0, piece));
      up.erase(0, piece);
      for (std::string down = session.take_output(); !down.empty(); down.erase(0, piece))
        asker.take(down.substr(0, piece), said);
      if (asker.state() == TlsSession::State::kOpen && !std::exchange(asked, true))
        asker.say(framed(to_bytes(question)));
      up += asker.take_output();
    }
    ASSERT_EQ(step, AskSession::Step::kAsked) << piece;
    EXPECT_EQ(session.question().method, question.method);
    EXPECT_EQ(session.question().body, question.body);
    session.answer(std::string(20'000, 'r'));
    for (std::string down = session.take_output(); !down.empty(); down.erase(0, piece))
      asker.take(down.substr(0, piece), said);
    FrameReader frame(kMostAnswerBytes);
    ASSERT_EQ(frame.take(said), FrameReader::State::kWhole);
    EXPECT_EQ(*read_answer(frame.message(), ""), std::string(20'000, 'r'));
  }
}

// A stranger's bytes have a bound in all, with those by which TLS makes its records longer.
TEST(AskSession, BytesInAll) {
  const TlsContext door = *door_context(run_credentials());
  const TlsContext context = *stranger_context(stranger());
  AskSession session(door.get());
  TlsSession asker = TlsSession::connect(context.get(), kCertificateHost);
  std::string said;
  ASSERT_EQ(session.take(asker.take_output()), AskSession::Step::kMore);
  asker.take(session.take_output(), said);
  ASSERT_EQ(SSL_set_block_padding(const_cast<SSL*>(asker.ssl()), 4096), 1);
  const std::string question = framed(std::string(60'000, 'q'));
  std::size_t sent = 0;
  AskSession::Step step = session.take(asker.take_output());
  for (std::size_t at = 0; step == AskSession::Step::kMore && at < question.size(); ++at) {
    asker.say(question.substr(at, 1));
    const std::string record = asker.take_output();
    sent += record.size();
    step = session.take(record);
  }
  EXPECT_EQ(step, AskSession::Step::kOver);
  EXPECT_NEAR(static_cast<double>(sent), static_cast<double>(AskSession::kMostBytes), 5'000);
}

// Claim: a client's handshake costs the door what the cheap groups cost. A hello with dear ones alone is
// refused before anything is computed for it.
TEST(TlsSession, DearGroups) {
  const TlsContext door = *door_context(run_credentials());
  for (const char* groups : {"ffdhe2048", "ffdhe8192", "P-384", "P-521", "X448"}) {
    const TlsContext context = *stranger_context(stranger());
    ASSERT_EQ(SSL_CTX_set1_groups_list(context.get(), groups), 1);
    TlsSession client = TlsSession::connect(context.get(), kCertificateHost);
    TlsSession session = TlsSession::serve(door.get());
    std::string said;
    EXPECT_EQ(session.take(client.take_output(), said), TlsSession::State::kBroken) << groups;
  }
  for (const char* groups : {"X25519", "P-256", "P-384:P-256", "ffdhe8192:X25519"}) {
    const TlsContext context = *stranger_context(stranger());
    ASSERT_EQ(SSL_CTX_set1_groups_list(context.get(), groups), 1);
    TlsSession client = TlsSession::connect(context.get(), kCertificateHost);
    TlsSession session = TlsSession::serve(door.get());
    std::string said;
    for (int turn = 0; turn < 2; ++turn) {  // a second hello, where the first has a dear share
      session.take(client.take_output(), said);
      client.take(session.take_output(), said);
    }
    EXPECT_EQ(session.take(client.take_output(), said), TlsSession::State::kOpen) << groups;
  }
}

// Claim: the first message of TLS itself behind the handshake ends a session. Of those that came with it no
// other is read.
TEST(TlsSession, NewKeysAgainAndAgain) {
  const TlsContext door = *door_context(run_credentials());
  const TlsContext context = *stranger_context(stranger());
  TlsSession client = TlsSession::connect(context.get(), kCertificateHost);
  TlsSession session = TlsSession::serve(door.get());
  std::string said;
  session.take(client.take_output(), said);
  client.take(session.take_output(), said);
  ASSERT_EQ(session.take(client.take_output(), said), TlsSession::State::kOpen);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(SSL_key_update(const_cast<SSL*>(client.ssl()), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(const_cast<SSL*>(client.ssl())), 1);
  }
  BIO* const read = SSL_get_rbio(session.ssl());
  const auto before = BIO_number_read(read);
  EXPECT_EQ(session.take(client.take_output(), said), TlsSession::State::kBroken);
  EXPECT_LT(BIO_number_read(read) - before, 100U);
}

class DoorTest : public ::testing::Test {
 protected:
  void open(const DoorLimits& limits, Lane lane = Lane::kControl) {
    auto opened = Door::open({.credentials = run_credentials(),
                              .limits = limits,
                              .sink =
                                  [this](const NetworkEvent& event) {
                                    const auto& asked = std::get<Asked>(event);
                                    if (asked.method == "Echo") door_->answer(asked.question, asked.body);
                                  }},
                             numbers_);
    ASSERT_TRUE(opened.ok());
    door_ = *std::move(opened);
    auto listening = listen_at({"127.0.0.1", 0}, lane);
    ASSERT_TRUE(listening.ok());
    at_ = listening->at;
    number_ = door_->serve(*std::move(listening), lane, [this](int socket) { handed_.push(socket); });
  }
  // A socket that has not connected.
  static Descriptor new_socket() { return Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  void connect(const Descriptor& socket) const {
    const Result<Addresses> addresses = addresses_of(at_, AddressUse::kReach);
    ASSERT_TRUE(addresses.ok());
    ASSERT_EQ(::connect(socket.get(), (*addresses)->ai_addr, (*addresses)->ai_addrlen), 0);
  }
  [[nodiscard]] Descriptor silent() const {
    Descriptor socket = new_socket();
    connect(socket);
    return socket;
  }
  // Whether the door closes this connection.
  static bool closed(const Descriptor& socket, int patience_ms = kPatienceMs) {
    pollfd entry{.fd = socket.get(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, patience_ms) == 1;
  }
  // What a stranger is answered over this socket, which may be connected already.
  [[nodiscard]] Result<std::string> echo(Descriptor socket) const {
    const TlsContext context = *stranger_context(stranger());
    StrangerTalk talk(context.get(), std::move(socket), {.at = at_});
    const Deadline deadline(from_milliseconds(kPatienceMs));
    if (auto shaken = talk.shake_hands(deadline); !shaken.ok()) return shaken.error();
    const auto answer = talk.ask("Echo", "hello", deadline);
    return answer ? *answer : Result<std::string>(Error{.what = "no answer"});
  }
  // The same until the door has given its descriptor back, which would be a free one among those of a test.
  // The sanitizer of undefined behaviour opens a pipe where it meets a type for the first time: here.
  void echo_to_its_end() const {
    const auto open_descriptors = [] {
      const std::filesystem::directory_iterator all("/proc/self/fd");
      return std::distance(begin(all), end(all));
    };
    const auto before = open_descriptors();
    EXPECT_EQ(*echo(silent()), "hello");
    const PosixClock clock;
    const Instant patience = clock.now() + from_milliseconds(kPatienceMs);
    while (open_descriptors() > before && clock.now() < patience) std::this_thread::yield();
    EXPECT_EQ(open_descriptors(), before);
  }
  Descriptor handed() {
    const auto all = handed_.wait(from_milliseconds(kPatienceMs));
    EXPECT_EQ(all.size(), 1U);
    return Descriptor(all.empty() ? -1 : all.front());
  }
  // A connection that offers h2, and gRPC's end of it.
  std::pair<Descriptor, Descriptor> grpc() {
    Descriptor near = silent();
    const std::string hello = hello_with("\x02h2");
    EXPECT_EQ(::send(near.get(), hello.data(), hello.size(), 0), static_cast<ssize_t>(hello.size()));
    Descriptor far = handed();
    return {std::move(near), std::move(far)};
  }

  QuestionNumbers numbers_ = 0;
  Mailbox<int> handed_;
  std::unique_ptr<Door> door_;
  Endpoint at_;
  std::uint64_t number_ = 0;
};

// Silent guests of one host have their places. Each further one costs the oldest its place, and an asker is
// answered all the same.
TEST_F(DoorTest, SilentGuestsMakeRoom) {
  open({.unread = 8, .unread_of_host = 4, .questions = 4, .questions_of_host = 2});
  std::vector<Descriptor> guests;
  for (int i = 0; i < 10; ++i) guests.push_back(silent());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(closed(guests[i])) << i;
  for (std::size_t i = 6; i < 10; ++i) EXPECT_FALSE(closed(guests[i], 0)) << i;
  EXPECT_EQ(*echo(silent()), "hello");
}

// Bytes that are no hello of ours end a connection at once.
TEST_F(DoorTest, GarbageIsClosed) {
  open(kAmple);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), hello_with("\x08http/1.1")}) {
    const Descriptor guest = silent();
    ASSERT_EQ(::send(guest.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(closed(guest));
  }
}

// Claim: at the bulk port a stranger sees the certificates, and its question ends the connection.
TEST_F(DoorTest, NoQuestionAtTheBulkPort) {
  open(kAmple, Lane::kBulk);
  const TlsContext context = *stranger_context(stranger());
  StrangerTalk talk(context.get(), silent(), {.at = at_});
  const Deadline deadline(from_milliseconds(kPatienceMs));
  ASSERT_TRUE(talk.shake_hands(deadline).ok());
  const auto answer = talk.ask("Echo", "hello", deadline);
  EXPECT_FALSE(answer && answer->ok());
  EXPECT_EQ(numbers_, 0U) << "the question has come to somebody";
  const auto [near, far] = grpc();
  EXPECT_FALSE(closed(near, 0));
}

// gRPC gets a connection with all of its bytes. Until the peer has shown its certificate, it may have to make
// room: both ends see it. Afterwards it does not count.
TEST_F(DoorTest, GrpcGetsWhatIsItsOwn) {
  open({.unread = 8, .unread_of_host = 3, .questions = 4, .questions_of_host = 2});
  const auto [near, far] = grpc();
  std::string bytes(4096, '\0');
  const ssize_t size = ::recv(far.get(), bytes.data(), bytes.size(), 0);
  EXPECT_GT(size, 100);
  EXPECT_EQ(look_at(bytes.substr(0, static_cast<std::size_t>(size))), Guest::kGrpc);
  const auto [known, known_far] = grpc();
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  ASSERT_EQ(::getsockname(known.get(), reinterpret_cast<sockaddr*>(&from), &length), 0);
  door_->shown(number_, to_string(peer_address(from)));
  std::vector<Descriptor> guests;
  for (int i = 0; i < 3; ++i) guests.push_back(silent());
  EXPECT_TRUE(closed(near));
  // The hello of the second lies unread at its far end, which has not ended.
  EXPECT_FALSE(closed(known, 0));
  for (const Descriptor& guest : guests) EXPECT_FALSE(closed(guest, 0));
}

// Leaves this process as many free descriptors as given, while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const Descriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit few{.rlim_cur = static_cast<rlim_t>(next.get()) + more, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

// Without a free descriptor the oldest unread guest makes room, whatever the limits say.
TEST_F(DoorTest, OutOfDescriptors) {
  open(kAmple);
  echo_to_its_end();
  std::vector<Descriptor> guests;
  for (int i = 0; i < 50; ++i) guests.push_back(new_socket());
  Descriptor asker = new_socket();
  const FewDescriptors few(10);
  for (const Descriptor& guest : guests) connect(guest);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_TRUE(closed(guests[i])) << i;
  for (std::size_t i = 45; i < 50; ++i) EXPECT_FALSE(closed(guests[i], 0)) << i;
  connect(asker);
  EXPECT_EQ(*echo(std::move(asker)), "hello");
}

// Where no guest can make room, the reserve takes newcomers and closes them. The port goes on afterwards.
TEST_F(DoorTest, TheReserve) {
  open(kAmple);
  echo_to_its_end();
  {
    std::vector<Descriptor> guests;
    for (int i = 0; i < 20; ++i) guests.push_back(new_socket());
    const FewDescriptors few(0);
    for (const Descriptor& guest : guests) connect(guest);
    for (const Descriptor& guest : guests) EXPECT_TRUE(closed(guest));
  }
  EXPECT_EQ(*echo(silent()), "hello");
}

// Claim: the guests of one host begin 256 handshakes at once and then 100 a second. Those above that wait,
// and each of them has its turn.
TEST_F(DoorTest, AFloodWaitsForItsTurns) {
  constexpr int kGuests = 320;
  open(kAmple);
  const std::string hello = hello_with("\x02h2");
  const PosixClock clock;
  const Instant start = clock.now();
  int begun = 0;
  const auto look = [&](Duration patience) {
    for (const int socket : handed_.wait(patience)) {
      const Descriptor far(socket);
      ++begun;
    }
    EXPECT_LE(begun, 256 + 100 * (clock.now() - start).seconds() + 1);
  };
  std::vector<Descriptor> guests;
  for (int i = 0; i < kGuests; ++i) {
    guests.push_back(silent());
    ASSERT_EQ(::send(guests.back().get(), hello.data(), hello.size(), 0), static_cast<ssize_t>(hello.size()));
    look({});
  }
  while (begun < kGuests && clock.now() - start < from_milliseconds(kPatienceMs))
    look(from_milliseconds(100));
  EXPECT_EQ(begun, kGuests);
}

// A question that the user never answers ends with the door, and its asker learns of it at once.
TEST_F(DoorTest, EndsWithQuestionsOpen) {
  open(kAmple);
  const TlsContext context = *stranger_context(stranger());
  StrangerTalk talk(context.get(), silent(), {.at = at_});
  const Deadline deadline(from_milliseconds(kPatienceMs));
  ASSERT_TRUE(talk.shake_hands(deadline).ok());
  door_->end();
  const auto answer = talk.ask("Never", "", deadline);
  ASSERT_TRUE(answer && !answer->ok());
  EXPECT_THAT(answer->error().message(), HasSubstr("the question failed"));
}

}  // namespace
}  // namespace gossamer::host
