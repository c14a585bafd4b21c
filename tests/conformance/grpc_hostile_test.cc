// SPDX-License-Identifier: Apache-2.0
//
// The real network against gRPC clients that do not behave as ours do.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <string>

#include "networks.h"

namespace gossamer::host {
namespace {

// A client that says that it will write no more, and that never reads. No write to it can ever end.
class HalfClosing {
 public:
  explicit HalfClosing(const Endpoint& at)
      : stub_(grpc::CreateChannel(to_string(at), grpc::InsecureChannelCredentials())),
        call_(stub_.PrepareCall(&context_, "/gossamer.Link/control", &queue_)) {
    call_->StartCall(nullptr);
    finish_one();
  }
  ~HalfClosing() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  void half_close() {
    call_->WritesDone(nullptr);
    finish_one();
  }

 private:
  void finish_one() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
    EXPECT_TRUE(ok);
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

class GrpcHostile : public NetworkTest {};

// A half-closed client counts as gone, whether or not a write to it hangs. The network can then end.
TEST_P(GrpcHostile, HalfClosedAndNeverReads) {
  for (const int frames : {0, 1, 128}) {
    Recorder& server = start("server" + std::to_string(frames));
    HalfClosing client(listen(server));
    ASSERT_TRUE(world_->run_until([&] { return server.all<Accepted>().size() == 1; }));
    const Slice block = Slice::of(std::string(Network::kMaxFrameBytes, 'x'));
    for (int i = 0; i < frames; ++i) server.network->send(server.all<Accepted>()[0].connection, {block});
    client.half_close();
    EXPECT_TRUE(world_->run_until([&] { return server.all<Closed>().size() == 1; })) << frames;
  }
}

INSTANTIATE_TEST_SUITE_P(Plain, GrpcHostile, ::testing::Values(NetworkKind::kPlain),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace gossamer::host
