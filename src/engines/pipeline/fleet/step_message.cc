// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/step_message.h"

#include <gossamer/pipeline.pb.h>

#include <array>
#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "engines/pipeline/fleet/wire_values.h"
#include "net/link/channels.h"

namespace gossamer::pipeline {
namespace {

using Wire = pipeline_wire::PipelineStep;

void put(const Credit& one, Wire& body) { body.set_credit(one.total); }
void put(const Forward& one, Wire& body) { body.set_forward(one.microbatch); }
void put(const Backward& one, Wire& body) { body.set_backward(one.microbatch); }
void put(const AllBack&, Wire& body) { body.mutable_all_back(); }

// The lowest byte first.
template <class T>
void put_number(T number, std::span<std::byte>& out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<std::byte>(number >> 8 * i & 0xff);
  out = out.subspan(sizeof(T));
}

template <class T>
T take_number(std::span<const std::byte>& in) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) number |= std::to_integer<std::uint64_t>(in[i]) << 8 * i;
  in = in.subspan(sizeof(T));
  return static_cast<T>(number);
}

}  // namespace

net::Message write_step_message(const StepMessage& message, Slices payload) {
  Wire body;
  *body.mutable_attempt() = wire_attempt(message.attempt);
  std::visit([&](const auto& one) { put(one, body); }, message.what);
  return {.channel = net::kPipelineSteps, .body = body.SerializeAsString(), .payload = std::move(payload)};
}

std::optional<StepMessage> read_step_message(const net::Message& message) {
  Wire body;
  if (!body.ParseFromString(message.body) || !body.has_attempt()) return std::nullopt;
  StepMessage read{.attempt = read_attempt(body.attempt()), .what = AllBack{}};
  bool has_payload = false;
  switch (body.what_case()) {
    case Wire::kCredit: read.what = Credit{body.credit()}; break;
    case Wire::kForward:
      read.what = Forward{body.forward()};
      has_payload = true;
      break;
    case Wire::kBackward:
      read.what = Backward{body.backward()};
      has_payload = true;
      break;
    case Wire::kAllBack: break;
    case Wire::WHAT_NOT_SET: return std::nullopt;
  }
  if (!has_payload && total_bytes(message.payload) > 0) return std::nullopt;
  return read;
}

Slice write_record(const StepRecord& record) {
  std::vector<std::byte> bytes(kRecordBytes);
  std::span<std::byte> left(bytes);
  std::apply([&](auto... fields) { (put_number(fields, left), ...); }, record.bits());
  return Slice::of(std::move(bytes));
}

std::optional<StepRecord> read_record(const Slices& bytes) {
  if (total_bytes(bytes) != kRecordBytes) return std::nullopt;
  std::array<std::byte, kRecordBytes> whole{};
  copy_front(bytes, whole);
  std::span<const std::byte> left(whole);
  StepRecord record;
  record.hash = take_number<std::uint64_t>(left);
  record.squared_norm = std::bit_cast<double>(take_number<std::uint64_t>(left));
  record.root = take_number<std::uint64_t>(left);
  record.loss = std::bit_cast<double>(take_number<std::uint64_t>(left));
  record.tokens = take_number<std::uint64_t>(left);
  record.records_before = take_number<std::uint64_t>(left);
  record.not_finite = take_number<std::uint8_t>(left);
  record.wishes = take_number<std::uint8_t>(left);
  return record;
}

}  // namespace gossamer::pipeline
