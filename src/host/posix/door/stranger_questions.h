// SPDX-License-Identifier: Apache-2.0
//
// StrangerQuestions: the questions that a process without a certificate asks. Each has a thread, as few are
// asked at once: a stranger has one question at a time.
//
// Thread rule: any thread. The sink is called on the question's thread, with no lock held.
#pragma once

#include <list>
#include <mutex>
#include <thread>

#include "host/api/network.h"
#include "host/posix/door/credentials.h"
#include "host/system/descriptor.h"

namespace gossamer::host {

class StrangerQuestions {
 public:
  StrangerQuestions(NetworkCredentials credentials, NetworkSink sink);
  StrangerQuestions(const StrangerQuestions&) = delete;
  StrangerQuestions& operator=(const StrangerQuestions&) = delete;
  ~StrangerQuestions() { end(); }

  // Answered follows, perhaps before it returns.
  void ask(QuestionId id, const Endpoint& to, Question question);
  // Gives all of them up, and waits for their threads: for the time of a name's look-up at most.
  void end();

 private:
  struct Talk {
    std::thread thread;
    bool over = false;
  };
  void clear();

  const NetworkCredentials credentials_;
  const NetworkSink sink_;
  Descriptor sign_;  // readable once all is over
  std::mutex mutex_;
  // Guarded by mutex_.
  std::list<Talk> talks_;
  bool ending_ = false;
};

}  // namespace gossamer::host
