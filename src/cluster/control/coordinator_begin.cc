// SPDX-License-Identifier: Apache-2.0
//
// Coordinator, its answers to Begin and Lead, and the numbers of nodes.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/node_name.h"
#include "base/printable.h"
#include "cluster/control/control_message.h"
#include "cluster/control/coordinator.h"

namespace gossamer::cluster {
namespace {

constexpr std::size_t kMaxName = 255;

// Whether a text can stand as a host. Others dial it, and it is shown to people. Empty for a node behind NAT.
bool is_host(const std::string& host) {
  return host.size() <= kMaxName && printable(host) == host && host.find(' ') == std::string::npos;
}

Error malformed(const char* what, std::size_t bytes) {
  return {.kind = ErrorKind::kBadData,
          .what = fmt::format("cannot read the question {}", what),
          .got = fmt::format("{} bytes", bytes),
          .expected = "a message of docs/protocols/membership.md",
          .fix = "look whether node and coordinator run the same version"};
}

// Not kRefused: a refusal would end the node, but the asker's own coordinator listens elsewhere.
Error other_run(const std::string& got, const std::string& expected) {
  return {.what = "this coordinator leads another run",
          .got = got,
          .expected = expected,
          .fix = "ask a coordinator of that run, or join this one with a token of it"};
}

// Not kRefused: the node may ask again.
Error too_many_lives(NodeId node) {
  return {.where = certificate_name(node),
          .what = "this node has begun too many lives",
          .got = "another one",
          .expected = fmt::format("one in {:.0f} s", LifeBudget::kEvery.seconds()),
          .fix = "wait; see why its lives end"};
}

Result<membership::BeginAsk> read_begin(const std::string& bytes, const std::string& run) {
  membership::BeginAsk ask;
  if (!ask.ParseFromString(bytes)) return malformed("Begin", bytes.size());
  if (ask.run() != run) return other_run(ask.run(), run);
  const membership::Listening& at = ask.listening();
  const bool long_texts = ask.name().size() > kMaxName || ask.machine().size() > kMaxName;
  if (long_texts || !is_host(at.control().host()) || !is_host(at.bulk().host()))
    return malformed("Begin", bytes.size());
  return ask;
}

// The fields that are known. A copy of the message would keep all others that a node has made up, in the
// store and in each view.
membership::Address known_fields(const membership::Address& address) {
  membership::Address known;
  known.set_host(address.host());
  known.set_port(address.port());
  return known;
}

// The record of a node that begins, with the next incarnation. The node's certificate proves that its number
// was given: no other node gets it, even where the store was put back from an older copy.
membership::MemberRecord new_record(NodeId node, const membership::BeginAsk& ask, membership::Lead& lead) {
  membership::MemberRecord record;
  record.set_node(node.value);
  record.set_incarnation(lead.next_incarnation());
  lead.set_next_incarnation(lead.next_incarnation() + 1);
  lead.set_next_node(std::max(lead.next_node(), node.value + 1));
  record.set_state(membership::JOINING);
  record.set_name(ask.name());
  const membership::Listening& at = ask.listening();
  if (at.has_control()) *record.mutable_listening()->mutable_control() = known_fields(at.control());
  if (at.has_bulk()) *record.mutable_listening()->mutable_bulk() = known_fields(at.bulk());
  record.set_memory_bytes(ask.memory_bytes());
  record.set_cores(ask.cores());
  record.set_machine(ask.machine());
  return record;
}

NodeId next_node(membership::Lead& lead) {
  const NodeId node(lead.next_node());
  lead.set_next_node(node.value + 1);
  return node;
}

membership::LeadAnswer lead_answer(const CoordinatorOptions& options, const membership::Lead& lead) {
  membership::LeadAnswer answer;
  answer.set_generation(options.generation.value);
  answer.set_incarnation(lead.incarnation());
  *answer.mutable_listening() = options.listening;
  for (const membership::Address& address : options.coordinators) *answer.add_coordinators() = address;
  return answer;
}

}  // namespace

void Coordinator::lead(const std::string& bytes, const Answer& answer) const {
  membership::LeadAsk ask;
  if (!ask.ParseFromString(bytes)) return answer(malformed("Lead", bytes.size()));
  if (ask.run() != options_.run) return answer(other_run(ask.run(), options_.run));
  answer(lead_answer(options_, lead_).SerializeAsString());
}

void Coordinator::give_node(const std::string& token, std::int64_t now,
                            const std::function<void(NodeId)>& use) {
  const NodeId node = next_node(lead_);
  outbox_.put(put_lead(lead_));
  outbox_.put(put_node(admitted_.let_in(node, token, now)));
  outbox_.then([use, node] { use(node); });
}

void Coordinator::begin(NodeId node, const std::string& bytes, Answer answer, Instant now) {
  outbox_.set_now(now);
  const Result<membership::BeginAsk> ask = read_begin(bytes, options_.run);
  if (!ask.ok()) return answer(ask.error());
  if (expelled(node)) return answer(expelled_error(node));
  if (changes_.told()) {
    membership::BeginAnswer ends;
    *ends.mutable_stop() = changes_.stop_asked();
    return outbox_.then(
        [answer = std::move(answer), ends = std::move(ends)] { answer(ends.SerializeAsString()); });
  }
  // Without certificates, as in tests, each life is of another node.
  if (node.value != 0 && !arrivals_.may_begin(node, now)) {
    reach(ControlProbe::kTooManyLives);
    return answer(too_many_lives(node));
  }
  if (node.value == 0) node = next_node(lead_);
  if (const auto before = run_.members.find(node); before != run_.members.end()) {
    reach(ControlProbe::kBeginAgain);
    watch_.begins_again(before->second, now);
    fence(node, "it began a new life", now);
  }
  LedMember& member = run_.members[node];
  member.record = new_record(node, *ask, lead_);
  member.began = now;
  watch_.expect(member, now);
  outbox_.put(put_lead(lead_));
  if (options_.guarded(Defect::kForgottenMember)) outbox_.put(put_member(member.record));
  outbox_.note("begun", peer_of(member.record), member.record.name());

  membership::BeginAnswer begun;
  begun.set_node(node.value);
  begun.set_incarnation(member.record.incarnation());
  *begun.mutable_lead() = lead_answer(options_, lead_);
  begun.set_beat_ms(static_cast<std::uint32_t>(options_.beat_every.milliseconds()));
  begun.set_configuration(options_.configuration);
  outbox_.then([this, answer = std::move(answer), begun = std::move(begun)] {
    if (options_.witness != nullptr) options_.witness->began(begun);
    answer(begun.SerializeAsString());
  });
}

}  // namespace gossamer::cluster
