// SPDX-License-Identifier: Apache-2.0
//
// A network without anybody on it, for tests that make up all answers. Thread rule: one owner.
#pragma once

#include <string>
#include <utility>

#include "host/api/network.h"

namespace gossamer::cluster {

class Nobody final : public host::Network {
 public:
  Result<host::Endpoint> listen(const host::Endpoint& at, host::Lane) override { return at; }
  host::ConnectionId connect(const host::Endpoint&, host::Lane) override { return ++last_; }
  void send(host::ConnectionId, Slices) override {}
  void consumed(host::ConnectionId, std::uint64_t) override {}
  void close(host::ConnectionId) override {}
  host::QuestionId ask(const host::Endpoint& to, host::Question question) override {
    asked_at_ = to;
    question_ = std::move(question);
    return ++asked_;
  }
  void answer(host::QuestionId, Result<std::string>) override {}

  // The last question.
  [[nodiscard]] host::QuestionId asked() const { return asked_; }
  [[nodiscard]] const host::Endpoint& asked_at() const { return asked_at_; }
  [[nodiscard]] const host::Question& question() const { return question_; }

 private:
  host::ConnectionId last_;
  host::QuestionId asked_;
  host::Endpoint asked_at_;
  host::Question question_;
};

}  // namespace gossamer::cluster
