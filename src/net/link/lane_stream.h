// SPDX-License-Identifier: Apache-2.0
//
// LaneStream: one lane of a link, both directions, over all connections that come and go under it
// (docs/protocols/link.md, "Order, loss, and coming back" and "Back-pressure"). Sending, it cuts messages
// into frames and keeps these until the other side has them. On a new connection it sends again what the old
// one lost. Receiving, it puts messages together and bounds what the other side may send.
//
// A pure state machine: frames come in, frames go out, and `now` is an argument. Thread rule: one owner.
#pragma once

#include <gossamer/link.pb.h>

#include <cstdint>
#include <deque>
#include <optional>

#include "base/result.h"
#include "base/slice.h"
#include "base/time.h"
#include "net/link/message.h"

namespace gossamer::net {

// Counts the messages of one direction of a lane: 1, 2, 3, ...
using MessageNumber = std::uint64_t;

class LaneStream {
 public:
  // Bytes of a piece: small enough that a line of 2 kB/s brings one within Connection::kSilence. So both ends
  // hear of each piece in time, one by the piece and the other by its acknowledgement.
  static constexpr std::uint64_t kPieceBytes = 16ULL << 10;
  static constexpr Duration kAckDelay{50'000'000};

  // `window`: how many bytes of complete messages may be here and not consumed, in [2 kPieceBytes, 2^40).
  explicit LaneStream(std::uint64_t window);

  // Queues a message; returns its number. Requires body and payload within their limits.
  MessageNumber send(Message message);
  // Takes back a message that is not wholly sent; false if it is, or was never queued.
  bool cancel(MessageNumber number);
  // The user is done with `bytes` of delivered messages (counted_bytes).
  void consumed(std::uint64_t bytes);

  // The progress that Hello, Welcome and Ack tell the other side: what has arrived here, and how far it may
  // go on.
  [[nodiscard]] wire::Progress tell();
  // A connection is up, and the other side has what `theirs` says: the rest is sent again. An error if that
  // cannot be.
  [[nodiscard]] Result<void> attach(const wire::Progress& theirs);

  // Whether attach() would succeed.
  [[nodiscard]] bool can_attach(const wire::Progress& theirs) const;

  struct NextFrame {
    Slices bytes;
    std::uint32_t channel = 0;  // of the message of which it is a piece
  };
  // The next frame for the connection; nothing while the other side's window is full or the queue is empty.
  [[nodiscard]] std::optional<NextFrame> next_frame();

  // Takes a Data frame from the other side. Gives the message that it completes, if it does. An error
  // (kBadData) for anything that a correct peer never sends: the connection must then be closed.
  [[nodiscard]] Result<std::optional<Message>> on_data(const wire::Data& data, Slices payload, Instant now);
  [[nodiscard]] Result<void> on_ack(const wire::Progress& theirs);

  // The time at which the next Ack should go out (long ago: now); nothing if there is none to send.
  [[nodiscard]] std::optional<Instant> ack_due() const;
  // The last message that the other side has wholly.
  [[nodiscard]] MessageNumber acknowledged() const { return acknowledged_; }
  // Three sums in counted_bytes(): given to send() and not acknowledged by the other side; acknowledged;
  // arrived here.
  [[nodiscard]] std::uint64_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] std::uint64_t acknowledged_bytes() const { return acknowledged_bytes_; }
  [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }
  // What is kept here because of the other side, likewise: queued for it, and arrived and not consumed.
  [[nodiscard]] std::uint64_t held_bytes() const { return queued_bytes_ + received_bytes_ - done_bytes_; }

 private:
  struct Outgoing {
    MessageNumber number = 0;
    std::uint32_t channel = 0;
    std::string body;
    SliceReader payload;
    bool started = false;
  };
  struct Kept {
    wire::Data data;
    Slices payload;
    std::uint64_t bytes = 0;
    std::uint32_t channel = 0;
    MessageNumber completes = 0;  // 0: no message
  };
  struct Arriving {
    Message message;
    std::uint64_t expected = 0;  // of payload
    std::uint64_t have = 0;
    std::uint64_t counted = 0;  // counted_bytes() of what is here
  };

  [[nodiscard]] std::uint64_t window() const;
  [[nodiscard]] Result<void> forget_through(std::uint64_t frame);
  void cut_piece();
  [[nodiscard]] Slices encode(const Kept& kept) const;
  [[nodiscard]] Error fault(std::string got, std::string expected) const;
  [[nodiscard]] Result<void> check_data(const wire::Data& data, std::uint64_t bytes,
                                        std::uint64_t payload) const;

  const std::uint64_t window_size_;

  // Towards the other side.
  MessageNumber last_message_ = 0;
  std::deque<Outgoing> queue_;
  std::uint64_t last_frame_ = 0;  // the highest frame number given out
  std::uint64_t forgotten_ = 0;   // frames up to this one are acknowledged
  std::deque<Kept> kept_;         // frames forgotten_ + 1 .. last_frame_
  std::size_t next_to_send_ = 0;  // index into kept_
  std::uint64_t sent_bytes_ = 0;  // counted against the other side's window
  std::uint64_t their_window_ = 0;
  MessageNumber acknowledged_ = 0;
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t acknowledged_bytes_ = 0;

  // From the other side.
  std::uint64_t received_ = 0;  // frames
  std::uint64_t received_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;  // consumed or cancelled
  std::optional<Arriving> arriving_;
  std::uint64_t told_window_ = 0;
  std::uint64_t told_received_ = 0;
  std::optional<Instant> oldest_untold_;
};

}  // namespace gossamer::net
