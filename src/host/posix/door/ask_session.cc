// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/ask_session.h"

#include <optional>
#include <utility>

namespace gossamer::host {

AskSession::Step AskSession::take(std::string_view bytes) {
  taken_ += bytes.size();
  if (taken_ > kMostBytes) return Step::kOver;
  std::string said;
  const TlsSession::State state = tls_.take(bytes, said);
  const FrameReader::State frame = frame_.take(said);
  const bool alive = state == TlsSession::State::kShaking || state == TlsSession::State::kOpen;
  if (!alive || frame == FrameReader::State::kBroken) return Step::kOver;
  if (frame == FrameReader::State::kMore) return Step::kMore;
  std::optional<AskMessage> ask = read_ask(frame_.message());
  if (!ask) return Step::kOver;
  question_ = *std::move(ask);
  return Step::kAsked;
}

void AskSession::answer(const Result<std::string>& answer) {
  tls_.say(framed(answer_bytes(answer)));
  tls_.end();
}

}  // namespace gossamer::host
