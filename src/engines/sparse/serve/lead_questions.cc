// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/lead_questions.h"

#include <utility>

#include "cluster/control/view.h"
#include "engines/sparse/fleet/step/layout_message.h"

namespace gossamer::sparse_engine {

void LeadQuestions::begin_life() {
  open_ = false;
  epoch_ = Epoch();
  told_link_ = 0;
  taken_over_ = 0;  // links have numbers of their own in each life
  question_.reset();
}

void LeadQuestions::open(Epoch epoch, const sparse::NetworkPart& part, Instant now) {
  open_ = true;
  epoch_ = epoch;
  part_.Clear();
  write_part(part, part_);
  told_link_ = 0;
  tick(now);
}

void LeadQuestions::tick(Instant now) {
  if (!open_ || process_.member() == nullptr) return;
  const std::uint64_t now_linked = link();
  if (now_linked == 0 || now_linked == told_link_) return;
  sparse_serving::Body body;
  body.mutable_ready()->set_epoch(epoch_.value);
  *body.mutable_ready()->mutable_part() = part_;
  if (send({.channel = kQueryChannel, .body = body.SerializeAsString(), .payload = {}}, now))
    told_link_ = now_linked;
}

std::uint64_t LeadQuestions::link() const {
  if (process_.links() == nullptr || process_.member() == nullptr) return 0;
  return process_.links()->statistics(process_.member()->coordinator().node).link;
}

std::optional<Error> LeadQuestions::objection(const net::Arrived& event) {
  if (event.from.node == cluster::kCoordinatorNode) return std::nullopt;
  return Error{.kind = ErrorKind::kBadData,
               .what = "a member asks about the part of another",
               .fix = "look whether it runs this version"};
}

void LeadQuestions::on(const net::Arrived& event) {
  if (event.message.channel != kQueryChannel || event.from != process_.member()->coordinator()) return;
  sparse_serving::Body body;
  if (!body.ParseFromString(event.message.body) || !body.has_question()) return;
  question_ = std::make_shared<const Question>(Question{.asked = std::move(*body.mutable_question()),
                                                        .payload = event.message.payload,
                                                        .link = event.receipt.link});
}

std::shared_ptr<const LeadQuestions::Question> LeadQuestions::take() {
  if (!open_ || question_ == nullptr) return nullptr;
  const Epoch asked(question_->asked.epoch());
  if (epoch_ < asked) return nullptr;
  const auto question = std::exchange(question_, nullptr);
  taken_over_ = question->link;
  return asked == epoch_ ? question : nullptr;
}

void LeadQuestions::give(net::Message answer, Instant now) {
  if (link() == taken_over_) static_cast<void>(send(std::move(answer), now));
}

Result<net::Message> LeadQuestions::answer(PartAnswers& answers, const Question& question) {
  auto payload = answers.answer(question.asked, question.payload);
  if (!payload.ok()) return payload.error();
  sparse_serving::Body body;
  body.mutable_answer()->set_number(question.asked.number());
  return net::Message{.channel = kQueryChannel,
                      .body = body.SerializeAsString(),
                      .payload = {Slice::of(*std::move(payload))}};
}

bool LeadQuestions::send(net::Message message, Instant now) {
  if (process_.links() == nullptr || process_.member() == nullptr) return false;
  const host::Lane lane =
      net::counted_bytes(message) > host::kBulkBytes ? host::Lane::kBulk : host::Lane::kControl;
  return process_.links()->send(process_.member()->coordinator(), lane, std::move(message), now).has_value();
}

}  // namespace gossamer::sparse_engine
