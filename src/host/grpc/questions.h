// SPDX-License-Identifier: Apache-2.0
//
// GrpcQuestions: the questions of one GrpcNetwork (host/api/question.h). A question that this process asks is
// a unary call on a channel of its own, or on one that is kept (kept_channels.h). A question that it is asked
// is a stream with one message each way, because only gRPC's generic service tells the method's name.
//
// Thread rule: any thread. No lock is held while the sink is called.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/api/network.h"
#include "host/grpc/question_calls.h"
#include "host/posix/door/door.h"

namespace gossamer::host {

class GrpcQuestions {
 public:
  GrpcQuestions(NetworkSink sink, QuestionNumbers& numbers);
  GrpcQuestions(const GrpcQuestions&) = delete;
  GrpcQuestions& operator=(const GrpcQuestions&) = delete;
  // Requires end().
  ~GrpcQuestions();

  // May hand Answered to the sink before it returns. `to` is for people.
  [[nodiscard]] QuestionId ask(const OutgoingQuestion::Way& way, const std::string& to, Question question);

  // Whether a call's full method name names a question.
  [[nodiscard]] static bool is_question(const std::string& method);
  // For gRPC: the reactor of a call that is_question(). Refuses a question without a deadline, or with one
  // too far away. Refuses one that comes while too many wait, in all or of one node.
  [[nodiscard]] grpc::ServerGenericBidiReactor* accept(grpc::GenericCallbackServerContext* context);

  void answer(QuestionId question, Result<std::string> answer);

  // Ends all questions; refuses those that come later.
  void cancel();
  // Call it after cancel(): it waits until gRPC is done with all of them.
  void end();
  // Frees what finished calls have left. Call it on a thread that is not gRPC's.
  void free_remains();

 private:
  void asked_over(QuestionId question, std::shared_ptr<void> remains);
  void answered_over(QuestionId question, const std::string& asker);

  const NetworkSink sink_;
  QuestionNumbers& numbers_;
  std::mutex mutex_;
  std::condition_variable all_over_;
  // Guarded by mutex_.
  bool ending_ = false;
  std::map<QuestionId, std::shared_ptr<OutgoingQuestion>> outgoing_;
  std::map<QuestionId, std::shared_ptr<IncomingQuestion>> incoming_;
  std::map<std::string, std::size_t> of_asker_;  // those of each certificate
  std::vector<std::shared_ptr<void>> remains_;   // channels, which must not be freed on gRPC's threads
};

// The reactor of a call that is not served: it ends at once.
[[nodiscard]] grpc::ServerGenericBidiReactor* refuse_call(const grpc::Status& status);

}  // namespace gossamer::host
