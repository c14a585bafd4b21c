// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, however they are cut, as what a stranger sends to the door: a message with its length, a
// question, an answer, a hello. A message survives the cuts. What is read survives being written and read
// again. A decision about a hello does not change with more bytes. Guests that come, ask and go in any order
// never exceed their places, and each of them ends.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "host/api/question.h"
#include "host/grpc/certificates.h"
#include "host/posix/door/ask_messages.h"
#include "host/posix/door/door_book.h"
#include "host/posix/door/frame_reader.h"
#include "host/posix/door/hello_reader.h"

namespace {

using namespace gossamer;
using namespace gossamer::host;

constexpr std::size_t kMost = 64;

void look_at_frame(fuzz::Choices& choices, const std::string& bytes) {
  FrameReader whole(kMost);
  FrameReader pieces(kMost);
  const FrameReader::State state = whole.take(bytes);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = 1 + choices.below(bytes.size() - at);
    pieces.take(bytes.substr(at, size));
    at += size;
  }
  CHECK(pieces.state() == state);
  if (state == FrameReader::State::kWhole)
    CHECK(pieces.message() == whole.message() && framed(whole.message()) == bytes);
}

void look_at_messages(const std::string& bytes) {
  const auto ask = read_ask(bytes);
  if (ask) {
    CHECK(is_method(ask->method));
    const auto again = read_ask(to_bytes(*ask));
    CHECK(again && again->method == ask->method && again->body == ask->body);
  }
  const auto answer = read_answer(bytes, "there");
  if (!answer.ok()) CHECK(answer.error().message().size() <= 6 * kMaxErrorPartBytes);
  const auto again = read_answer(answer_bytes(answer), "there");
  CHECK(again.ok() == answer.ok());
  if (answer.ok()) CHECK(*again == *answer);
  if (!answer.ok()) CHECK(again.error().message() == answer.error().message());
}

void look_at_hello(const std::string& bytes) {
  static const TlsContext context = [] {
    const Validity validity{.now_seconds = 1.8e9, .days = 30};
    const KeyAndCertificate authority = *make_authority("run", validity);
    const KeyAndRequest own = *make_request();
    return *look_context({.authority = authority.certificate,
                          .certificate = *sign_request(authority, own.request, "node-1", validity),
                          .key = own.key});
  }();
  HelloReader reader(context.get());
  HelloReader::Guest guest = HelloReader::Guest::kUnknown;
  for (std::size_t size = 1; size <= bytes.size() && size <= HelloReader::kMostBytes; size += 1 + size / 4) {
    const HelloReader::Guest now = reader.look(bytes.substr(0, size));
    CHECK(guest == HelloReader::Guest::kUnknown || now == guest);
    guest = now;
  }
}

class Guests {
 public:
  void act(fuzz::Choices& choices) {
    const GuestId guest{1 + choices.below(last_.value + 1)};
    now_ = now_ + Duration{static_cast<std::int64_t>(choices.below(2'000'000'000))};
    switch (choices.below(6)) {
      case 0: return come(choices);
      case 1: return ask(guest);
      case 2:
        if (accepted_.erase(guest) == 1) book_.handed_over(guest, now_);
        return;
      case 3:
        if (asked_.erase(guest) == 1) book_.answered(guest, now_);
        return;
      case 4: book_.remove(guest); return gone(guest);
      default: break;
    }
    for (const auto& [one, state] : book_.over(now_)) gone(one);
    CHECK(!book_.next_over() || *book_.next_over() > now_);
  }
  void end() {
    for (const auto& [one, state] : book_.over(now_ + kMaxQuestionTime)) gone(one);
    CHECK(book_.size() == 0 && here_.empty());
  }

 private:
  void come(fuzz::Choices& choices) {
    PeerAddress host;
    host.bytes[0] = static_cast<std::uint8_t>(choices.below(4));
    if (const auto leaves = book_.accept(++last_, host, now_)) {
      CHECK(here_.contains(*leaves));
      gone(*leaves);
    }
    here_.insert(last_);
    accepted_.insert(last_);
    CHECK(book_.size() == here_.size());
    CHECK(here_.size() <= kLimits.unread + kLimits.questions);
  }
  void ask(GuestId guest) {
    if (accepted_.erase(guest) == 0) return;
    book_.asks(guest);
    const DoorBook::Place place = book_.asked(guest, now_);
    if (place.room == DoorBook::Room::kGiven) asked_.insert(guest);
    if (place.leaves) gone(*place.leaves);
    CHECK(asked_.size() <= kLimits.questions);
  }
  void gone(GuestId guest) {
    here_.erase(guest);
    accepted_.erase(guest);
    asked_.erase(guest);
  }

  static constexpr DoorLimits kLimits{
      .unread = 6, .unread_of_host = 4, .questions = 4, .questions_of_host = 2};
  DoorBook book_{kLimits};
  Instant now_;
  GuestId last_;
  std::set<GuestId> here_;
  std::set<GuestId> accepted_;
  std::set<GuestId> asked_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fuzz::Choices choices(data, size);
  look_at_frame(choices, bytes);
  look_at_messages(bytes);
  look_at_hello(bytes);
  Guests guests;
  while (choices.left()) guests.act(choices);
  guests.end();
  return 0;
}
