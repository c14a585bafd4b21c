// SPDX-License-Identifier: Apache-2.0
//
// One question as gRPC sees it, on either side. gRPC keeps the object until OnDone, and shares it with
// GrpcQuestions. Thread rule: any thread; no lock is held while the sink is called.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "host/api/network.h"

namespace gossamer::host {

inline constexpr const char* kQuestionService = "/gossamer.Admission/";

class OutgoingQuestion final : public grpc::ClientUnaryReactor {
 public:
  // Called after Answered. The remains must not be freed on gRPC's threads.
  using Over = std::function<void(QuestionId, std::shared_ptr<void> remains)>;
  // Called before Answered. Whether an answer came, be it an error.
  using Reached = std::function<void(bool reached)>;
  struct Way {
    std::shared_ptr<grpc::Channel> channel;
    Reached reached = {};
  };

  OutgoingQuestion(QuestionId id, std::string where, NetworkSink sink, Over over, const Way& way);

  // `self` keeps it until it is over.
  void start(std::shared_ptr<OutgoingQuestion> self, Question question);
  // This side gives up. Answered follows.
  void cancel();

 private:
  struct Call {
    explicit Call(const std::shared_ptr<grpc::Channel>& channel) : stub(channel) {}
    grpc::GenericStub stub;
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer response;
  };

  void OnDone(const grpc::Status& status) override;
  [[nodiscard]] Result<std::string> outcome(const grpc::Status& status, const Call& call);

  const QuestionId id_;
  const std::string where_;
  const NetworkSink sink_;
  const Over over_;
  const Reached reached_;
  std::string method_;
  Duration timeout_;

  std::mutex mutex_;
  // Guarded by mutex_.
  bool cancelled_ = false;
  std::unique_ptr<Call> call_;
  std::shared_ptr<OutgoingQuestion> self_;
};

class IncomingQuestion final : public grpc::ServerGenericBidiReactor {
 public:
  using Over = std::function<void(QuestionId)>;

  IncomingQuestion(QuestionId id, NetworkSink sink, Over over, grpc::GenericCallbackServerContext* context);

  // `self` keeps it until it is over.
  void start(std::shared_ptr<IncomingQuestion> self);
  // Only the first counts.
  void answer(Result<std::string> answer);
  void cancel();

 private:
  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  // True for the first caller, which may finish the call.
  [[nodiscard]] bool claim_finish();

  const QuestionId id_;
  const NetworkSink sink_;
  const Over over_;
  grpc::GenericCallbackServerContext* const context_;
  grpc::ByteBuffer request_;   // gRPC's while reading
  grpc::ByteBuffer response_;  // gRPC's once the answer was given

  std::mutex mutex_;
  // Guarded by mutex_.
  bool finished_ = false;
  std::shared_ptr<IncomingQuestion> self_;
};

}  // namespace gossamer::host
