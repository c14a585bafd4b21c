// SPDX-License-Identifier: Apache-2.0
//
// GrpcStream: one connection over gRPC's callback interface, whichever side opened it. A stream is shared by
// its reactor, which gRPC calls, and the network, which users call; it lives until gRPC has called OnDone.
//
// Thread rule: any thread. Its lock is never held while the sink is called.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "host/api/network.h"

namespace gossamer::host {

class GrpcStream {
 public:
  // Called after the last event. What is left of the connection must not be freed on gRPC's threads: the last
  // channel joins them.
  using Finished = std::function<void(ConnectionId, std::shared_ptr<void> remains)>;

  GrpcStream(ConnectionId id, std::string where, NetworkSink sink, Finished finished);
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;
  virtual ~GrpcStream() = default;

  [[nodiscard]] ConnectionId id() const { return id_; }

  void send(Slices frame);
  void consumed(std::uint64_t cost);
  void close();

 protected:
  // What the two sides' reactors offer; called with the lock held, and never after end_operations().
  virtual void start_read(grpc::ByteBuffer* into) = 0;
  virtual void start_write(const grpc::ByteBuffer* from, grpc::WriteOptions options) = 0;
  virtual void cancel() = 0;

  // From the reactors' callbacks.
  void begin(NetworkEvent first);
  void read_done();
  void write_done();
  void write_failed();
  void meet();
  // The other side sends no more: cancels, unless the stream has ended.
  void hung_up();
  // No operation starts any more. True the first time.
  bool end_operations();
  void done(Error reason, std::shared_ptr<void> remains);

  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  // With the lock held.
  void read_next();
  void write_next();
  void cut();

  const ConnectionId id_;
  const std::string where_;
  const NetworkSink sink_;
  const Finished finished_;

  std::mutex mutex_;
  // Guarded by mutex_.
  bool begun_ = false;
  bool ended_ = false;
  bool closed_here_ = false;
  bool writes_over_ = false;
  bool reading_ = false;
  bool writing_ = false;
  std::uint64_t unconsumed_ = 0;  // Network::cost()
  std::deque<grpc::ByteBuffer> queue_;
  // Used by gRPC while reading_ or writing_.
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
};

class GrpcClientStream final : public GrpcStream,
                               public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  struct Call;  // channel, stub and context

  GrpcClientStream(ConnectionId id, std::string where, NetworkSink sink, Finished finished,
                   std::unique_ptr<Call> call);
  ~GrpcClientStream() override;

  // `self` keeps the stream until it is over.
  void start(std::shared_ptr<GrpcClientStream> self, const std::string& method);

 private:
  void start_read(grpc::ByteBuffer* into) override { StartRead(into); }
  void start_write(const grpc::ByteBuffer* from, grpc::WriteOptions options) override {
    StartWrite(from, options);
  }
  void cancel() override;

  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void fail();

  std::unique_ptr<Call> call_;
  std::shared_ptr<GrpcClientStream> self_;
};

class GrpcServerStream final : public GrpcStream, public grpc::ServerGenericBidiReactor {
 public:
  GrpcServerStream(ConnectionId id, std::string where, NetworkSink sink, Finished finished,
                   grpc::GenericCallbackServerContext* context);

  void start(std::shared_ptr<GrpcServerStream> self, Accepted accepted);

 private:
  void start_read(grpc::ByteBuffer* into) override { StartRead(into); }
  void start_write(const grpc::ByteBuffer* from, grpc::WriteOptions options) override {
    StartWrite(from, options);
  }
  void cancel() override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void finish();

  grpc::GenericCallbackServerContext* context_;
  std::atomic<bool> finish_called_ = false;
  std::shared_ptr<GrpcServerStream> self_;
};

// A frame as it was received: shared with gRPC if its slices are large, else copied into one.
[[nodiscard]] Slices from_grpc(const grpc::ByteBuffer& buffer);

// The common name in the certificate of a connection's other end; empty without one.
[[nodiscard]] std::string certificate_name(const grpc::AuthContext* context);

// The part of gRPC's name for a peer that all connections of one host have in common:
// - "ipv4:192.0.2.1:5000": all but the port;
// - "ipv6:%5B2001:db8::1%5D:5000": the first 64 bits, "ipv6:2001:db8::/64", as a host may have all addresses
//   of such a network.
[[nodiscard]] std::string host_of(const std::string& peer);

}  // namespace gossamer::host
