// SPDX-License-Identifier: Apache-2.0
//
// What only the real network has: clients that are not ours, and errors on gRPC's wire.
#include "host/grpc/questions.h"

#include <gmock/gmock.h>
#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <string>

#include "host/grpc/network.h"
#include "host/grpc/status.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;

// A server that answers every question with its body, from within the sink.
class EchoServer {
 public:
  EchoServer() {
    network_ = make_grpc_network(std::nullopt, [this](NetworkEvent event) {
      auto* const asked = std::get_if<Asked>(&event);
      if (asked != nullptr) network_->answer(asked->question, "echo " + asked->body);
    });
    at_ = *network_->listen({"127.0.0.1", 0}, Lane::kControl);
  }
  [[nodiscard]] std::string address() const { return to_string(at_); }

 private:
  std::unique_ptr<Network> network_;
  Endpoint at_;
};

struct Reply {
  grpc::Status status;
  std::string body;
};

// A call of any gRPC client; without `seconds` it has no deadline.
Reply call(const std::string& address, const std::string& method, const std::string& body,
           std::optional<int> seconds) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  if (seconds.has_value()) context.set_deadline(gpr_time_from_seconds(*seconds, GPR_TIMESPAN));
  const grpc::Slice slice(body);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  Reply reply{.status = done.get_future().get(), .body = {}};
  grpc::Slice whole;
  if (reply.status.ok() && response.DumpToSingleSlice(&whole).ok())
    reply.body.assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
  return reply;
}

// A plain gRPC client can ask; without a deadline, or with one far away, it is told to set one.
TEST(GrpcQuestions, AnyClientMayAsk) {
  const EchoServer server;
  EXPECT_EQ(call(server.address(), "/gossamer.Admission/Echo", "hello", 50).body, "echo hello");
  for (const std::optional<int> seconds : {std::optional<int>(), std::optional(3600)}) {
    const Reply reply = call(server.address(), "/gossamer.Admission/Echo", "hello", seconds);
    EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(reply.status.error_message(), HasSubstr("deadline"));
  }
}

// What is no question of ours is no question: other services, names that are none, and sizes beyond a
// frame's.
TEST(GrpcQuestions, OtherCallsAreRefused) {
  const EchoServer server;
  for (const char* method : {"/gossamer.Other/Echo", "/gossamer.Admission/", "/gossamer.Admission/a/b",
                             "/gossamer.Admission/a1", "/x"}) {
    EXPECT_EQ(call(server.address(), method, "", 50).status.error_code(), grpc::StatusCode::UNIMPLEMENTED)
        << method;
  }
  for (const std::size_t size :
       {kMaxQuestionBytes + 1, static_cast<std::size_t>(Network::kMaxFrameBytes) + 1}) {
    EXPECT_FALSE(call(server.address(), "/gossamer.Admission/Echo", std::string(size, 'x'), 50).status.ok());
  }
  EXPECT_EQ(call(server.address(), "/gossamer.Admission/Echo", "still there", 50).body, "echo still there");
}

// A server that ends a call well and says nothing is an error, and nothing worse.
TEST(GrpcQuestions, AnswerWithoutMessage) {
  class Silent final : public grpc::CallbackGenericService {
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
      return refuse_call(grpc::Status::OK);
    }
  };
  Silent service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  std::promise<Result<std::string>> answer;
  const auto network = make_grpc_network(std::nullopt, [&answer](NetworkEvent event) {
    if (auto* const answered = std::get_if<Answered>(&event)) answer.set_value(std::move(answered->answer));
  });
  const Endpoint at{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)};
  static_cast<void>(network->ask(at, {.method = "Echo"}));
  const Result<std::string> result = answer.get_future().get();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(result.error().where, to_string(at));
}

// An error survives as a status and back; what another server says is kept as far as it goes, and made fit.
TEST(GrpcStatus, ErrorsGoThereAndBack) {
  for (const ErrorKind kind :
       {ErrorKind::kFailed, ErrorKind::kUsage, ErrorKind::kBadData, ErrorKind::kRefused}) {
    const Error error{.kind = kind, .where = "1", .what = "2", .got = "3", .expected = "4", .fix = "5"};
    const Error back = to_error(to_status(error), "there");
    EXPECT_EQ(back.kind, kind);
    EXPECT_EQ(back.message(), error.message());
  }
  EXPECT_EQ(to_error(to_status({.what = "w"}), "there").where, "there");
  const grpc::Status foreign(grpc::StatusCode::PERMISSION_DENIED, "no\x1b[2J", "\xff\xff garbage");
  const Error read = to_error(foreign, "there");
  EXPECT_EQ(read.kind, ErrorKind::kFailed);  // nobody of the run has refused
  EXPECT_EQ(read.message(), "there: the question failed: no?[2J");
  EXPECT_NE(to_error({grpc::StatusCode::UNAVAILABLE, "m"}, "there").fix, "");
  EXPECT_EQ(to_error({grpc::StatusCode::UNKNOWN, "m", "\x08\x09"}, "there").kind, ErrorKind::kFailed);
  // google.rpc.Status, which others have there, with a code that would be a kind of ours.
  EXPECT_EQ(to_error({grpc::StatusCode::DEADLINE_EXCEEDED, "m", "\x08\x04\x12\x01m"}, "there").kind,
            ErrorKind::kFailed);
}

}  // namespace
}  // namespace gossamer::host
