// SPDX-License-Identifier: Apache-2.0
#include "node/shared_tokens.h"

#include <gossamer/admission.pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/node_name.h"
#include "cluster/control/view.h"
#include "host/api/question.h"
#include "node/admission/credentials.h"
#include "node/admission/enrolling.h"
#include "node/places.h"
#include "node/questions.h"

namespace gossamer::node {
namespace {

constexpr Duration kAskTime{5'000'000'000};

bool remembered(const cluster::TokenRecord& record, std::int64_t now) {
  return now - record.expires < kTokenRemembered;
}

Result<wire::Tokens> all_of(cluster::TokenBook& book, std::int64_t now) {
  const auto list = book.list();
  if (!list.ok()) return list.error();
  wire::Tokens tokens;
  for (const cluster::TokenRecord& record : list->records) {
    if (remembered(record, now)) tokens.add_records(cluster::to_text(record));
  }
  return tokens;
}

Result<void> take_up(cluster::TokenBook& book, const std::string& bytes, const std::string& where) {
  wire::Tokens tokens;
  if (!tokens.ParseFromString(bytes)) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = where,
                 .what = "cannot read what it knows of tokens",
                 .expected = "a message of docs/protocols/admission.md",
                 .fix = "run the same version of gossamer on both sides"};
  }
  for (const std::string& text : tokens.records()) {
    const auto record = cluster::parse_token_record(text, where);
    if (!record.ok()) return record.error();
    if (auto merged = book.merge(*record); !merged.ok()) return merged.error();
  }
  return {};
}

}  // namespace

std::vector<Error> share_tokens(cluster::TokenBook& book, cluster::Coordinator& coordinator,
                                std::int64_t now) {
  std::vector<Error> errors;
  std::set<std::string> not_here;
  const std::map<std::string, std::string> stored = coordinator.tokens();
  for (const auto& [id, text] : stored) {
    const auto record = cluster::parse_token_record(text, "the store's tokens/" + id);
    const auto merged = record.ok() ? book.merge(*record) : record;
    if (!merged.ok()) {
      errors.push_back(merged.error());
      if (record.ok()) not_here.insert(id);
    } else if (!remembered(*merged, now)) {
      coordinator.forget_token(id);
    }
  }
  const auto all = book.list();
  if (!all.ok()) {
    errors.push_back(all.error());
    return errors;
  }
  for (const cluster::TokenRecord& record : all->records) {
    // The store may know of a revocation that could not be written here, and would lose it.
    if (not_here.contains(record.id)) continue;
    if (remembered(record, now)) coordinator.keep_token(record.id, cluster::to_text(record));
  }
  return errors;
}

std::vector<Error> TokenShare::share(cluster::TokenBook& book, cluster::Coordinator& coordinator,
                                     const Lead& lead) {
  const bool first = tried_ != lead.generation;
  if (done_ == lead.generation || (!first && lead.now < next_)) return {};
  tried_ = lead.generation;
  next_ = lead.now + kTryEvery;
  std::vector<Error> errors = share_tokens(book, coordinator, lead.wall_seconds);
  const auto again = [](const Error& error) { return error.kind != ErrorKind::kBadData; };
  if (std::ranges::none_of(errors, again)) done_ = lead.generation;
  return first ? errors : std::vector<Error>();
}

Result<void> TokenShare::shared(Generation lead) const {
  if (done_ == lead) return {};
  return Error{.what = "this coordinator has not taken up the run's tokens yet",
               .expected = "a directory that it can write",
               .fix = "try again in a moment"};
}

Result<std::vector<std::string>> token_questions(cluster::TokenBook& book, std::int64_t now) {
  const auto known = all_of(book, now);
  if (!known.ok()) return known.error();
  std::vector<std::string> questions;
  wire::Tokens some;
  for (const std::string& record : known->records()) {
    some.add_records(record);
    if (some.ByteSizeLong() <= host::kMaxQuestionBytes || some.records_size() == 1) continue;
    some.mutable_records()->RemoveLast();
    questions.push_back(some.SerializeAsString());
    some.Clear();
    some.add_records(record);
  }
  questions.push_back(some.SerializeAsString());  // also where there is none: the answer has those of others
  return questions;
}

void answer_tokens(cluster::TokenBook& book, cluster::Coordinator& coordinator, const std::string& question,
                   std::int64_t now, const cluster::Coordinator::Answer& answer) {
  if (auto taken = take_up(book, question, "the question Tokens"); !taken.ok()) return answer(taken.error());
  const std::vector<Error> errors = share_tokens(book, coordinator, now);
  if (!errors.empty()) return answer(errors.front());
  auto all = all_of(book, now);
  if (!all.ok()) return answer(all.error());
  coordinator.once_durable([answer, bytes = all->SerializeAsString()] { answer(bytes); });
}

namespace {

// Asks the coordinators one after another, until one that leads has answered.
Result<void> tell_tokens(cluster::TokenBook& book, const std::string& directory, AskOptions ask,
                         const std::vector<host::Endpoint>& coordinators) {
  std::string said;
  for (const host::Endpoint& at : coordinators) {
    ask.at = at;
    const auto answer = ask_once(ask);
    if (answer.ok()) return take_up(book, *answer, host::to_string(at));
    said += (said.empty() ? "" : "; ") + answer.error().message();
  }
  return Error{
      .where = directory,
      .what = "no coordinator that leads was told of its tokens",
      .got = said,
      .fix = "run 'gossamer token list' on it again once one leads; until then they are only its own"};
}

}  // namespace

Result<void> exchange_tokens(const run::NodeHost& host, const std::string& directory) {
  const auto address = load_address(host.disk, directory);
  if (!address.ok()) return address.error();
  if (!address->shared) return {};
  cluster::TokenBook book(host.disk, directory + "/tokens");
  const auto questions = token_questions(book, static_cast<std::int64_t>(host.clock.wall_seconds()));
  if (!questions.ok()) return questions.error();
  const auto own = load_membership(host.disk, directory, host.clock.wall_seconds());
  if (!own.ok()) return own.error();
  std::vector<host::Endpoint> coordinators{address->coordinator};
  coordinators.insert(coordinators.end(), address->others.begin(), address->others.end());
  for (const std::string& question : *questions) {
    auto told = tell_tokens(book, directory,
                            {.at = {},
                             .credentials = own->credentials,
                             .question = {.method = kTokensMethod,
                                          .body = question,
                                          .timeout = kAskTime,
                                          .to = certificate_name(cluster::kCoordinatorNode)}},
                            coordinators);
    if (!told.ok()) return told;
  }
  return {};
}

}  // namespace gossamer::node
