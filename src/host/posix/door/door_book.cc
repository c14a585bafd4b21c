// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/door_book.h"

#include <algorithm>

#include "base/check.h"
#include "host/api/question.h"

namespace gossamer::host {
namespace {

// Strangers get this part of all descriptors for each kind of place.
constexpr std::uint64_t kPart = 8;
// An unread guest has a TLS handshake with gRPC or us. It takes 60 kB, and one that sends all but the last of
// what it may send takes 190 kB. So 1,024 of them take less than 200 MB.
constexpr std::uint64_t kMostUnread = 1024;
// The part of the places that one host may have, as a divisor. More would help nobody: a newcomer takes the
// place of its host's oldest guest.
constexpr std::uint64_t kUnreadHosts = 4;
constexpr std::uint64_t kQuestionHosts = kMaxStrangersQuestions / kMaxFromOneHost;

}  // namespace

DoorLimits door_limits(std::uint64_t descriptors) {
  const std::uint64_t part = std::max<std::uint64_t>(descriptors / kPart, kPart);
  const std::uint64_t unread = std::min(part, kMostUnread);
  const std::uint64_t questions = std::min<std::uint64_t>(part, kMaxStrangersQuestions);
  return {.unread = unread,
          .unread_of_host = unread / kUnreadHosts,
          .questions = questions,
          .questions_of_host = questions / kQuestionHosts};
}

void DoorBook::Places::add(const PeerAddress& host, GuestId guest) {
  of_host[host].insert(guest);
  ++taken;
}

void DoorBook::Places::remove(const PeerAddress& host, GuestId guest) {
  const auto place = of_host.find(host);
  CHECK(place != of_host.end() && place->second.erase(guest) == 1, guest.value);
  if (place->second.empty()) of_host.erase(place);
  --taken;
}

std::size_t DoorBook::Places::of(const PeerAddress& host) const {
  const auto place = of_host.find(host);
  return place == of_host.end() ? 0 : place->second.size();
}

GuestId DoorBook::Places::oldest_of_fullest() const {
  CHECK(taken > 0);
  const auto fullest =
      std::ranges::max_element(of_host, {}, [](const auto& place) { return place.second.size(); });
  return *fullest->second.begin();
}

DoorBook::Guest& DoorBook::find(GuestId guest) {
  const auto found = guests_.find(guest);
  CHECK(found != guests_.end(), guest.value);
  return found->second;
}

void DoorBook::wait_until(GuestId guest, Instant until) {
  Guest& one = find(guest);
  ends_.erase({one.until, guest});
  one.until = until;
  ends_.insert({until, guest});
}

std::optional<GuestId> DoorBook::accept(GuestId guest, const PeerAddress& host, Instant now) {
  std::optional<GuestId> leaves;
  if (unread_.of(host) >= limits_.unread_of_host) {
    leaves = *unread_.of_host.at(host).begin();
  } else if (unread_.taken >= limits_.unread) {
    leaves = unread_.oldest_of_fullest();
  }
  if (leaves) remove(*leaves);
  const Instant until = now + kReadTime;
  CHECK(guests_.empty() || guests_.rbegin()->first < guest, guest.value);
  guests_.insert({guest, {.host = host, .state = State::kAccepted, .unread = true, .until = until}});
  ends_.insert({until, guest});
  unread_.add(host, guest);
  return leaves;
}

void DoorBook::asks(GuestId guest) {
  Guest& one = find(guest);
  CHECK(one.state == State::kAccepted);
  one.state = State::kAsking;
}

void DoorBook::handed_over(GuestId guest, Instant now) {
  Guest& one = find(guest);
  CHECK(one.state == State::kAccepted);
  one.state = State::kHandedOver;
  wait_until(guest, now + kShowTime);
}

DoorBook::Place DoorBook::asked(GuestId guest, Instant now) {
  Guest& one = find(guest);
  CHECK(one.state == State::kAsking);
  Place place;
  if (questions_.of(one.host) >= limits_.questions_of_host) {
    place.room = Room::kBusy;
  } else if (questions_.taken >= limits_.questions) {
    // Two hosts that have as many each do not push each other out in turns.
    const GuestId oldest = questions_.oldest_of_fullest();
    const std::size_t own = questions_.of(one.host);
    if (own > 0 && questions_.of(find(oldest).host) <= own + 1) place.room = Room::kBusy;
    if (place.room == Room::kGiven) place.leaves = oldest;
  }
  if (place.room == Room::kBusy) {
    one.state = State::kAnswering;
    wait_until(guest, now + kAnswerTime);
    return place;
  }
  if (place.leaves) remove(*place.leaves);
  unread_.remove(one.host, guest);
  questions_.add(one.host, guest);
  one.unread = false;
  one.state = State::kAsked;
  wait_until(guest, now + kMaxQuestionTime);
  return place;
}

void DoorBook::answered(GuestId guest, Instant now) {
  Guest& one = find(guest);
  CHECK(one.state == State::kAsked);
  one.state = State::kAnswering;
  wait_until(guest, now + kAnswerTime);
}

void DoorBook::remove(GuestId guest) {
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return;
  places_of(found->second).remove(found->second.host, guest);
  ends_.erase({found->second.until, guest});
  guests_.erase(found);
}

std::optional<GuestId> DoorBook::make_room() {
  if (unread_.taken == 0) return std::nullopt;
  const GuestId leaves = unread_.oldest_of_fullest();
  remove(leaves);
  return leaves;
}

std::vector<std::pair<GuestId, DoorBook::State>> DoorBook::over(Instant now) {
  std::vector<std::pair<GuestId, State>> over;
  while (!ends_.empty() && ends_.begin()->first <= now) {
    const GuestId guest = ends_.begin()->second;
    over.emplace_back(guest, find(guest).state);
    remove(guest);
  }
  return over;
}

std::optional<Instant> DoorBook::next_over() const {
  return ends_.empty() ? std::nullopt : std::optional(ends_.begin()->first);
}

}  // namespace gossamer::host
