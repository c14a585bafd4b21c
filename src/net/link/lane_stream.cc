// SPDX-License-Identifier: Apache-2.0
#include "net/link/lane_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "net/link/frame.h"

namespace gossamer::net {

LaneStream::LaneStream(std::uint64_t window) : window_size_(window) {
  CHECK(window >= 2 * kPieceBytes && window < (1ULL << 40), window);
}

MessageNumber LaneStream::send(Message message) {
  const std::uint64_t payload = total_bytes(message.payload);
  CHECK(message.body.size() <= kMaxBodyBytes && payload <= kMaxPayloadBytes, message.body.size(), payload);
  queued_bytes_ += kMessageCost + message.body.size() + payload;
  queue_.push_back({.number = ++last_message_,
                    .channel = message.channel,
                    .body = std::move(message.body),
                    .payload = SliceReader(std::move(message.payload))});
  return last_message_;
}

bool LaneStream::cancel(MessageNumber number) {
  const auto found = std::ranges::find(queue_, number, &Outgoing::number);
  if (found == queue_.end()) return false;
  queued_bytes_ -= (found->started ? 0 : kMessageCost + found->body.size()) + found->payload.left();
  if (found->started) {
    Kept kept;
    kept.data.set_number(++last_frame_);
    kept.data.set_cancelled(true);
    kept_.push_back(std::move(kept));
  }
  queue_.erase(found);
  return true;
}

void LaneStream::consumed(std::uint64_t bytes) {
  const std::uint64_t arriving = arriving_.has_value() ? arriving_->counted : 0;
  CHECK(bytes <= received_bytes_ - done_bytes_ - arriving, bytes, received_bytes_, done_bytes_);
  done_bytes_ += bytes;
}

// A message that is larger than the window must not wait for itself. What was told is never taken back.
std::uint64_t LaneStream::window() const {
  const std::uint64_t arriving = arriving_.has_value() ? arriving_->counted : 0;
  return std::max(told_window_, done_bytes_ + arriving + window_size_);
}

wire::Progress LaneStream::tell() {
  told_window_ = window();
  told_received_ = received_;
  oldest_untold_.reset();
  wire::Progress progress;
  progress.set_received(told_received_);
  progress.set_window(told_window_);
  return progress;
}

bool LaneStream::can_attach(const wire::Progress& theirs) const {
  return theirs.received() >= forgotten_ && theirs.received() <= last_frame_;
}

Result<void> LaneStream::attach(const wire::Progress& theirs) {
  if (auto done = on_ack(theirs); !done.ok()) return done;
  next_to_send_ = 0;
  return {};
}

// Frames leave in the order of their numbers: kept ones first, then a new piece if the other side's window
// has room for it.
std::optional<LaneStream::NextFrame> LaneStream::next_frame() {
  if (next_to_send_ == kept_.size()) cut_piece();
  if (next_to_send_ == kept_.size()) return std::nullopt;
  const Kept& kept = kept_[next_to_send_++];
  return NextFrame{.bytes = encode(kept), .channel = kept.channel};
}

void LaneStream::cut_piece() {
  if (queue_.empty()) return;
  Outgoing& message = queue_.front();
  const std::uint64_t body = message.started ? 0 : message.body.size();
  const std::uint64_t payload = std::min(kPieceBytes - std::min(body, kPieceBytes), message.payload.left());
  const std::uint64_t bytes = (message.started ? 0 : kMessageCost) + body + payload;
  if (sent_bytes_ + bytes > their_window_) return;
  Kept kept;
  kept.channel = message.channel;
  kept.data.set_number(++last_frame_);
  if (!message.started) {
    wire::Data::Start* const start = kept.data.mutable_start();
    start->set_channel(message.channel);
    start->set_body(std::move(message.body));
    start->set_payload_bytes(message.payload.left());
    message.started = true;
  }
  kept.payload = message.payload.take(payload);
  kept.bytes = bytes;
  sent_bytes_ += bytes;
  if (message.payload.left() == 0) {
    kept.completes = message.number;
    queue_.pop_front();
  }
  kept_.push_back(std::move(kept));
}

Slices LaneStream::encode(const Kept& kept) const {
  wire::FrameHeader header;
  *header.mutable_data() = kept.data;
  return encode_frame(header, kept.payload);
}

Error LaneStream::fault(std::string got, std::string expected) const {
  return {.kind = ErrorKind::kBadData,
          .what = "the peer broke the rules of the link",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether both nodes run the same version"};
}

Result<void> LaneStream::check_data(const wire::Data& data, std::uint64_t bytes,
                                    std::uint64_t payload) const {
  if (data.number() != received_ + 1) {
    return fault(fmt::format("frame {}", data.number()), fmt::format("frame {}", received_ + 1));
  }
  if (received_bytes_ + bytes > window()) {
    return fault(fmt::format("{} bytes after {}", bytes, received_bytes_),
                 fmt::format("at most {} in all", window()));
  }
  if (data.has_start() == arriving_.has_value()) {
    return fault(data.has_start() ? "the start of a message within another" : "the middle of no message",
                 "messages one after another");
  }
  if (data.cancelled()) {
    if (data.has_start() || payload > 0)
      return fault("a cancelled message with content", "a frame that says no more");
    return {};
  }
  const std::uint64_t expected = data.has_start() ? data.start().payload_bytes() : arriving_->expected;
  const std::uint64_t have = data.has_start() ? 0 : arriving_->have;
  if (expected > kMaxPayloadBytes || payload > expected - have) {
    return fault(fmt::format("{} bytes of payload after {}", payload, have),
                 fmt::format("a message of {} bytes, at most {}", expected, kMaxPayloadBytes));
  }
  if (data.has_start() && data.start().body().size() > kMaxBodyBytes) {
    return fault(fmt::format("a body of {} bytes", data.start().body().size()),
                 fmt::format("at most {}", kMaxBodyBytes));
  }
  // Small pieces would cost more memory than the window counts.
  const std::uint64_t body = data.start().body().size();
  const std::uint64_t whole = std::max(kPieceBytes, body);
  if (payload < expected - have && body + payload != whole) {
    return fault(fmt::format("a piece of {} bytes", body + payload),
                 fmt::format("{}, or the rest of the message", whole));
  }
  return {};
}

Result<std::optional<Message>> LaneStream::on_data(const wire::Data& data, Slices payload, Instant now) {
  const std::uint64_t payload_bytes = total_bytes(payload);
  const std::uint64_t bytes =
      payload_bytes + (data.has_start() ? kMessageCost + data.start().body().size() : 0);
  if (auto good = check_data(data, bytes, payload_bytes); !good.ok()) return good.error();
  received_ = data.number();
  received_bytes_ += bytes;
  if (!oldest_untold_.has_value()) oldest_untold_ = now;
  if (data.cancelled()) {
    done_bytes_ += arriving_->counted;
    arriving_.reset();
    return std::optional<Message>();
  }
  if (data.has_start()) {
    arriving_ =
        Arriving{.message = {.channel = data.start().channel(), .body = data.start().body(), .payload = {}},
                 .expected = data.start().payload_bytes(),
                 .have = 0,
                 .counted = 0};
  }
  arriving_->have += payload_bytes;
  arriving_->counted += bytes;
  for (Slice& slice : payload) arriving_->message.payload.push_back(std::move(slice));
  if (arriving_->have < arriving_->expected) return std::optional<Message>();
  std::optional<Message> complete = std::move(arriving_->message);
  arriving_.reset();
  return complete;
}

Result<void> LaneStream::forget_through(std::uint64_t frame) {
  const std::uint64_t sent = forgotten_ + next_to_send_;
  if (frame < forgotten_ || frame > last_frame_) {
    return fault(fmt::format("an acknowledgement of frame {}", frame),
                 fmt::format("one of {} to {}", forgotten_, last_frame_));
  }
  while (forgotten_ < frame) {
    const Kept& kept = kept_.front();
    acknowledged_bytes_ += kept.bytes;
    queued_bytes_ -= kept.bytes;
    acknowledged_ = std::max(acknowledged_, kept.completes);
    kept_.pop_front();
    ++forgotten_;
  }
  next_to_send_ = static_cast<std::size_t>(std::max(sent, forgotten_) - forgotten_);
  return {};
}

Result<void> LaneStream::on_ack(const wire::Progress& theirs) {
  if (auto done = forget_through(theirs.received()); !done.ok()) return done;
  // An older window may come late on a new connection; it never shrinks.
  their_window_ = std::max(their_window_, theirs.window());
  return {};
}

std::optional<Instant> LaneStream::ack_due() const {
  if (window() - told_window_ >= window_size_ / 4) return Instant{};
  if (received_ == told_received_ || !oldest_untold_.has_value()) return std::nullopt;
  return *oldest_untold_ + kAckDelay;
}

}  // namespace gossamer::net
