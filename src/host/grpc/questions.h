// SPDX-License-Identifier: Apache-2.0
//
// GrpcQuestions: the questions of one GrpcNetwork (host/api/question.h). One that we ask is a unary call on a
// channel of its own; one that we are asked is a stream with one message each way, because only gRPC's
// generic service tells the method's name.
//
// Thread rule: any thread. No lock is held while the sink is called.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/api/network.h"

namespace gossamer::host {

class OutgoingQuestion;
class IncomingQuestion;

class GrpcQuestions {
 public:
  // Whether those who ask without a certificate are strangers, or the run has no certificates.
  enum class Strangers { kNone, kAsk };
  GrpcQuestions(NetworkSink sink, Strangers strangers);
  GrpcQuestions(const GrpcQuestions&) = delete;
  GrpcQuestions& operator=(const GrpcQuestions&) = delete;
  // Requires end().
  ~GrpcQuestions();

  // May hand Answered to the sink before it returns. `to` is for people.
  [[nodiscard]] QuestionId ask(const std::shared_ptr<grpc::Channel>& channel, const std::string& to,
                               Question question);

  // Whether a call's full method name is that of a question.
  [[nodiscard]] static bool is_question(const std::string& method);
  // For gRPC: the reactor of a call that is_question(). Refuses what has no deadline or comes while too many
  // wait, in all or of strangers from its host.
  [[nodiscard]] grpc::ServerGenericBidiReactor* accept(grpc::GenericCallbackServerContext* context);

  void answer(QuestionId question, Result<std::string> answer);

  // Ends all questions; what comes later is refused.
  void cancel();
  // After cancel(): waits until gRPC is done with all of them.
  void end();
  // On a user's thread: frees what finished calls have left.
  void free_remains();

 private:
  void asked_over(QuestionId question, std::shared_ptr<void> remains);
  void answered_over(QuestionId question);

  struct Incoming {
    std::shared_ptr<IncomingQuestion> question;
    std::string host;  // of a stranger; empty: it is none
  };

  const NetworkSink sink_;
  const Strangers strangers_;
  std::mutex mutex_;
  std::condition_variable all_over_;
  // Guarded by mutex_.
  bool ending_ = false;
  QuestionId last_;
  std::map<QuestionId, std::shared_ptr<OutgoingQuestion>> outgoing_;
  std::map<QuestionId, Incoming> incoming_;
  std::map<std::string, std::size_t> of_host_;  // of strangers, how many are incoming
  std::size_t strangers_waiting_ = 0;           // of all hosts
  std::vector<std::shared_ptr<void>> remains_;  // channels, which must not be freed on gRPC's threads
};

// A call that is not served ends at once.
[[nodiscard]] grpc::ServerGenericBidiReactor* refuse_call(const grpc::Status& status);

}  // namespace gossamer::host
