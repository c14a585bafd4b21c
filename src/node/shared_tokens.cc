// SPDX-License-Identifier: Apache-2.0
#include "node/shared_tokens.h"

#include <gossamer/admission.pb.h>

#include <map>
#include <utility>

#include "base/node_name.h"
#include "cluster/control/view.h"
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
  const std::map<std::string, std::string> stored = coordinator.tokens();
  for (const auto& [id, text] : stored) {
    const auto record = cluster::parse_token_record(text, "the store's tokens/" + id);
    const auto merged = record.ok() ? book.merge(*record) : record;
    if (!merged.ok()) {
      errors.push_back(merged.error());
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
    if (remembered(record, now)) coordinator.keep_token(record.id, cluster::to_text(record));
  }
  return errors;
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

Result<void> exchange_tokens(const run::NodeHost& host, const std::string& directory) {
  const auto address = load_address(host.disk, directory);
  if (!address.ok()) return address.error();
  if (!address->shared) return {};
  cluster::TokenBook book(host.disk, directory + "/tokens");
  const auto known = all_of(book, static_cast<std::int64_t>(host.clock.wall_seconds()));
  if (!known.ok()) return known.error();
  const auto own = load_membership(host.disk, directory, host.clock.wall_seconds());
  if (!own.ok()) return own.error();
  std::vector<host::Endpoint> coordinators{address->coordinator};
  coordinators.insert(coordinators.end(), address->others.begin(), address->others.end());
  std::string said;
  for (const host::Endpoint& at : coordinators) {
    const auto answer = ask_once({.at = at,
                                  .credentials = own->credentials,
                                  .question = {.method = kTokensMethod,
                                               .body = known->SerializeAsString(),
                                               .timeout = kAskTime,
                                               .to = certificate_name(cluster::kCoordinatorNode)}});
    if (answer.ok()) return take_up(book, *answer, host::to_string(at));
    said += (said.empty() ? "" : "; ") + answer.error().message();
  }
  return Error{
      .where = directory,
      .what = "no coordinator that leads was told of its tokens",
      .got = said,
      .fix = "run 'gossamer token list' on it again once one leads; until then they are only its own"};
}

}  // namespace gossamer::node
