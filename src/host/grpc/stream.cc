// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/stream.h"

#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "host/grpc/call.h"
#include "host/posix/door/peer_address.h"

namespace gossamer::host {
namespace {

// Below this a copy costs less than a reference.
constexpr std::size_t kCopyBytes = 256;
// Behind TLS a received slice is a part of 8 KiB, and keeps all of it. So a frame is shared only if its
// slices have half of that on average: what is counted of it is then no less than half of what it keeps.
constexpr std::size_t kSharedBytes = 4096;

// Keeps a slice that is lent to gRPC alive until gRPC lets it go, on whichever thread that happens. gRPC's
// own counter orders the two. `lent` says the same in code of ours, since ThreadSanitizer does not see into
// gRPC's library.
class Loan {
 public:
  explicit Loan(Slice slice) : slice_(std::move(slice)) { lent_.store(true, std::memory_order_release); }

  static void end(void* loan) {
    auto* const self = static_cast<Loan*>(loan);
    CHECK(self->lent_.load(std::memory_order_acquire));
    delete self;  // NOLINT(cppcoreguidelines-owning-memory): gRPC has held the only pointer
  }

 private:
  Slice slice_;
  std::atomic<bool> lent_ = false;
};

grpc::ByteBuffer to_grpc(Slices frame) {
  std::vector<grpc::Slice> slices;
  slices.reserve(frame.size());
  for (Slice& slice : frame) {
    const auto bytes = slice.bytes();
    if (bytes.size() <= kCopyBytes) {
      slices.emplace_back(bytes.data(), bytes.size());
    } else {
      slices.emplace_back(const_cast<std::byte*>(bytes.data()), bytes.size(), &Loan::end,
                          new Loan(std::move(slice)));
    }
  }
  return {slices.data(), slices.size()};
}

Error reason_of(const grpc::Status& status, const std::string& where) {
  const bool refused = status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
                       status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
  return {.kind = refused ? ErrorKind::kRefused : ErrorKind::kFailed,
          .where = where,
          .what = status.ok() ? "the other side has closed the connection"
                              : "the connection broke: " + status.error_message()};
}

}  // namespace

Slices from_grpc(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  Slices frame;
  frame.reserve(slices.size());
  for (grpc::Slice& slice : slices) {
    auto owner = std::make_shared<const grpc::Slice>(std::move(slice));
    const auto bytes = std::as_bytes(std::span(owner->begin(), owner->size()));
    frame.emplace_back(std::move(owner), bytes);
  }
  const std::uint64_t total = total_bytes(frame);
  if (total >= frame.size() * kSharedBytes) return frame;
  std::vector<std::byte> copy(total);
  copy_front(frame, copy);
  return {Slice::of(std::move(copy))};
}

std::string certificate_name(const grpc::AuthContext* context) {
  if (context == nullptr) return {};
  const auto names = context->FindPropertyValues("x509_common_name");
  return names.empty() ? std::string() : std::string(names[0].data(), names[0].size());
}

std::string host_of(const std::string& peer) {
  const auto address = read_peer(peer);
  if (!address || is_ipv4(*address)) return peer.substr(0, peer.rfind(':'));
  return "ipv6:" + address_text(host_of(*address)) + "/64";
}

GrpcStream::GrpcStream(ConnectionId id, std::string where, NetworkSink sink, Finished finished)
    : id_(id), where_(std::move(where)), sink_(std::move(sink)), finished_(std::move(finished)) {}

void GrpcStream::send(Slices frame) {
  const std::uint64_t bytes = total_bytes(frame);
  CHECK(bytes <= Network::kMaxFrameBytes, bytes);
  grpc::ByteBuffer buffer = to_grpc(std::move(frame));
  const std::lock_guard lock(mutex_);
  if (ended_ || writes_over_) return;
  queue_.push_back(std::move(buffer));
  write_next();
}

void GrpcStream::consumed(std::uint64_t cost) {
  const std::lock_guard lock(mutex_);
  CHECK(cost <= unconsumed_, cost, unconsumed_);
  unconsumed_ -= cost;
  read_next();
}

void GrpcStream::read_next() {
  // gRPC tells how a stream ended only when all that had arrived has been read: without writes, read on.
  const bool full = unconsumed_ >= Network::kReadAhead && !writes_over_;
  if (!begun_ || ended_ || reading_ || full) return;
  reading_ = true;
  start_read(&incoming_);
}

void GrpcStream::close() {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  closed_here_ = true;
  cut();
}

void GrpcStream::hung_up() {
  const std::lock_guard lock(mutex_);
  if (!ended_) cut();
}

void GrpcStream::cut() {
  ended_ = true;
  queue_.clear();
  cancel();
}

void GrpcStream::begin(NetworkEvent first) {
  sink_(std::move(first));
  const std::lock_guard lock(mutex_);
  begun_ = true;
  read_next();
  write_next();
}

void GrpcStream::read_done() {
  Slices frame;
  {
    const std::lock_guard lock(mutex_);
    frame = from_grpc(incoming_);
    incoming_.Clear();
    unconsumed_ += Network::cost(frame);
  }
  sink_(Received{id_, std::move(frame)});
  const std::lock_guard lock(mutex_);
  reading_ = false;
  read_next();
}

void GrpcStream::write_done() {
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    bytes = outgoing_.Length();
    outgoing_.Clear();
    writing_ = false;
  }
  sink_(Written{id_, bytes});
  const std::lock_guard lock(mutex_);
  write_next();
}

void GrpcStream::write_failed() {
  const std::lock_guard lock(mutex_);
  writes_over_ = true;
  queue_.clear();
  read_next();
}

void GrpcStream::write_next() {
  if (!begun_ || ended_ || writes_over_ || writing_ || queue_.empty()) return;
  writing_ = true;
  outgoing_.Swap(&queue_.front());
  queue_.pop_front();
  grpc::WriteOptions options;
  // gRPC would write each frame by itself, in a TLS record and a system call of its own. Where another frame
  // waits behind it, gRPC may wait for that one.
  if (!queue_.empty()) options.set_buffer_hint();
  start_write(&outgoing_, options);
}

// gRPC orders its callbacks by locks of its own, which race detectors do not see; they see this one.
void GrpcStream::meet() { const std::lock_guard lock(mutex_); }

bool GrpcStream::end_operations() {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  ended_ = true;
  queue_.clear();
  return true;
}

void GrpcStream::done(Error reason, std::shared_ptr<void> remains) {
  bool here = false;
  {
    const std::lock_guard lock(mutex_);
    here = closed_here_;
  }
  if (here) reason = Error{.where = where_, .what = "closed on this side"};
  sink_(Closed{id_, std::move(reason)});
  finished_(id_, std::move(remains));
}

GrpcClientStream::GrpcClientStream(ConnectionId id, std::string where, NetworkSink sink, Finished finished,
                                   std::unique_ptr<Call> call)
    : GrpcStream(id, std::move(where), std::move(sink), std::move(finished)), call_(std::move(call)) {}

GrpcClientStream::~GrpcClientStream() = default;

void GrpcClientStream::start(std::shared_ptr<GrpcClientStream> self, const std::string& method) {
  self_ = std::move(self);
  meet();
  call_->stub.PrepareBidiStreamingCall(&call_->context, method, grpc::StubOptions(), this);
  // Reads and writes start outside of callbacks too; the hold keeps OnDone away until no more do.
  AddHold();
  StartCall();
}

void GrpcClientStream::cancel() {
  call_->context.TryCancel();
  RemoveHold();
}

void GrpcClientStream::fail() {
  if (end_operations()) RemoveHold();
}

void GrpcClientStream::OnReadInitialMetadataDone(bool ok) {
  if (!ok) return fail();
  meet();
  begin(Opened{id(), {certificate_name(call_->context.auth_context().get())}});
}

void GrpcClientStream::OnReadDone(bool ok) { ok ? read_done() : fail(); }
void GrpcClientStream::OnWriteDone(bool ok) { ok ? write_done() : write_failed(); }

void GrpcClientStream::OnDone(const grpc::Status& status) {
  meet();
  const auto keep = std::move(self_);
  done(reason_of(status, where()), std::move(call_));
}

GrpcServerStream::GrpcServerStream(ConnectionId id, std::string where, NetworkSink sink, Finished finished,
                                   grpc::GenericCallbackServerContext* context)
    : GrpcStream(id, std::move(where), std::move(sink), std::move(finished)), context_(context) {}

void GrpcServerStream::start(std::shared_ptr<GrpcServerStream> self, Accepted accepted) {
  self_ = std::move(self);
  meet();
  StartSendInitialMetadata();
  begin(std::move(accepted));
}

// The call then ends with OnCancel, which finishes it.
void GrpcServerStream::cancel() { context_->TryCancel(); }

void GrpcServerStream::finish() {
  end_operations();
  if (!finish_called_.exchange(true)) Finish(grpc::Status::OK);
}

// A client that half-closes (ours never does) and reads nothing would keep a write under way for ever, and
// Finish behind it. So the stream is cancelled.
void GrpcServerStream::OnReadDone(bool ok) { ok ? read_done() : hung_up(); }
void GrpcServerStream::OnWriteDone(bool ok) { ok ? write_done() : write_failed(); }
void GrpcServerStream::OnCancel() { finish(); }

void GrpcServerStream::OnDone() {
  meet();
  const auto keep = std::move(self_);
  done(Error{.where = where(), .what = "the connection broke, or the other side has closed it"}, nullptr);
}

}  // namespace gossamer::host
