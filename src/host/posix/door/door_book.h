// SPDX-License-Identifier: Apache-2.0
//
// DoorBook decides which connections stay at the door, for how long, and which one makes room for another
// (docs/protocols/admission.md, "At the door"). It knows no socket.
//
// A guest is *unread* until it has asked a question or has shown a certificate. Unread guests have a bounded
// number of places, and questions under way have others. Where places are short, the oldest guest of the host
// with the most makes room. So no host crowds out another, and a newcomer is never the one that has to go.
//
// Thread rule: a plain object of one thread. Times only grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "host/posix/door/peer_address.h"

namespace gossamer::host {

using GuestId = StrongId<struct GuestIdTag>;

struct DoorLimits {
  std::size_t unread = 0;          // guests in all
  std::size_t unread_of_host = 0;  // of these, of one host
  std::size_t questions = 0;       // under way in all
  std::size_t questions_of_host = 0;
};
// What a process with so many descriptors can give to strangers. An unread guest takes two, a question one.
[[nodiscard]] DoorLimits door_limits(std::uint64_t descriptors);

// From the accept until the whole question is there, or the hello of another protocol.
inline constexpr Duration kReadTime{5'000'000'000};
// For the handshake of a guest that was handed over. gRPC has the same time-out.
inline constexpr Duration kShowTime{5'000'000'000};
// For the asker to take the answer.
inline constexpr Duration kAnswerTime{5'000'000'000};

class DoorBook {
 public:
  enum class State : std::uint8_t {
    kAccepted,    // its hello has not come
    kAsking,      // its question has not come
    kHandedOver,  // gRPC has it, and it has shown nothing yet
    kAsked,       // its question waits for an answer
    kAnswering,   // the answer is on its way
  };
  enum class Room : std::uint8_t { kGiven, kBusy };

  explicit DoorBook(const DoorLimits& limits) : limits_(limits) {}

  // A newcomer. The guest that is returned has to go for it, and is no longer in the book. Ids rise.
  [[nodiscard]] std::optional<GuestId> accept(GuestId guest, const PeerAddress& host, Instant now);
  // Its hello has come. Both require a guest that is kAccepted.
  void asks(GuestId guest);
  void handed_over(GuestId guest, Instant now);
  // Its question has come. kBusy: there is no place for it, and the answer is on its way. Else another guest
  // may have to go for it. Requires kAsking.
  struct Place {
    Room room = Room::kGiven;
    std::optional<GuestId> leaves;
  };
  [[nodiscard]] Place asked(GuestId guest, Instant now);
  // The answer is there. Requires kAsked.
  void answered(GuestId guest, Instant now);

  // The guest has gone, or has shown what it has to.
  void remove(GuestId guest);
  // The oldest unread guest of the host with the most, which has to go; none if there are none.
  [[nodiscard]] std::optional<GuestId> make_room();
  // The guests whose time is over, with the state that they had. They are no longer in the book.
  [[nodiscard]] std::vector<std::pair<GuestId, State>> over(Instant now);
  [[nodiscard]] std::optional<Instant> next_over() const;
  [[nodiscard]] std::size_t size() const { return guests_.size(); }

 private:
  // Guests of one kind, by host; a set has the oldest first.
  struct Places {
    std::map<PeerAddress, std::set<GuestId>> of_host;
    std::size_t taken = 0;

    void add(const PeerAddress& host, GuestId guest);
    void remove(const PeerAddress& host, GuestId guest);
    [[nodiscard]] std::size_t of(const PeerAddress& host) const;
    // Requires that a place is taken.
    [[nodiscard]] GuestId oldest_of_fullest() const;
  };
  struct Guest {
    PeerAddress host;
    State state = State::kAccepted;
    bool unread = true;
    Instant until;
  };

  Guest& find(GuestId guest);
  void wait_until(GuestId guest, Instant until);
  Places& places_of(const Guest& guest) { return guest.unread ? unread_ : questions_; }

  const DoorLimits limits_;
  std::map<GuestId, Guest> guests_;
  std::set<std::pair<Instant, GuestId>> ends_;
  Places unread_;
  Places questions_;
};

}  // namespace gossamer::host
