// SPDX-License-Identifier: Apache-2.0
#include "host/posix/etcd_store.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "host/posix/etcd_client.h"
#include "host/posix/etcd_requests.h"
#include "json/read_json.h"

namespace gossamer::host {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
// etcd's limits are 128 operations and 1.5 MiB a request; one operation is the guard's.
constexpr std::size_t kTransactionOperations = 120;
constexpr std::size_t kTransactionBytes = std::size_t{5} << 18;
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
// Pairs of at most 1 MiB each: a page and its decoding must stay well below a lease.
constexpr std::uint64_t kPage = 16;

// Room in a request for one change, keys and frames included.
std::size_t request_bytes(const std::string& key, const std::optional<std::string>& value) {
  return key.size() + (value ? value->size() : 0) + 256;
}

std::string leader_text(const Candidate& self, Generation generation) {
  const json record = {{"name", self.name}, {"address", self.address}, {"generation", generation.value}};
  return record.dump(-1, ' ', false, json::error_handler_t::replace);
}

Error not_etcd(const std::string& where, const json& answer) {
  return Error{.where = where,
               .what = "this answer is not one of etcd",
               .got = answer.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 200),
               .expected = "what was asked for",
               .fix = "see that this is the address of an etcd 3.4 or newer"};
}

Error damaged_redo(const std::string& where, const std::string& keys, std::string got) {
  return Error{.kind = ErrorKind::kBadData,
               .where = fmt::format("{}, keys {}*", where, keys),
               .what = "the redo log of a large commit is damaged",
               .got = std::move(got),
               .expected = "pieces of the size that redo/commit names",
               .fix = "put back a copy of etcd's data"};
}

Error not_our_format(const std::string& where, const std::string& key, const std::string& got) {
  return Error{.kind = ErrorKind::kRefused,
               .where = fmt::format("{}, key {}", where, key),
               .what = "this is not a coordinator's state that this program can read",
               .got = fmt::format("'{}'", got.substr(0, 80)),
               .expected = fmt::format("format {}", kFormat),
               .fix = "use another run id, or the program that wrote this state"};
}

using Changes = std::map<std::string, std::optional<std::string>>;

// The redo log's text: a CBOR array of [key, value or null].
std::string encode(const Changes& changes) {
  json list = json::array();
  for (const auto& [name, value] : changes) {
    json entry = json::array({json::binary({name.begin(), name.end()})});
    entry.push_back(value ? json::binary({value->begin(), value->end()}) : json());
    list.push_back(std::move(entry));
  }
  std::string text;
  json::to_cbor(list, nlohmann::detail::output_adapter<char>(text));
  return text;
}

// nullopt for a damaged text.
std::optional<Changes> decode(const std::string& text) {
  const json list = read_cbor<json>(text);
  if (!list.is_array()) return std::nullopt;
  Changes changes;
  for (const json& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_binary()) return std::nullopt;
    const auto& name = entry[0].get_binary();
    std::optional<std::string>& value = changes[std::string(name.begin(), name.end())];
    if (entry[1].is_binary()) value.emplace(entry[1].get_binary().begin(), entry[1].get_binary().end());
  }
  return changes;
}

// Reads the generation's value; nullopt for a text that no coordinator of this format has written.
std::optional<std::uint64_t> parse_generation(const std::string& text) {
  const json value = read_json<json>(text);
  const json& generation = etcd::member(value, "generation");
  if (etcd::member(value, "format") != json(kFormat) || !generation.is_number_unsigned()) return std::nullopt;
  return generation.get<std::uint64_t>();
}

}  // namespace

struct EtcdStore::Seat {
  std::uint64_t generation = 0;
  std::uint64_t generation_changed_at = 0;  // a revision; 0: the key is not there
};

EtcdStore::EtcdStore(const EtcdOptions& options, std::unique_ptr<EtcdClient> client)
    : options_(options), client_(std::move(client)) {}

EtcdStore::~EtcdStore() = default;

Result<std::unique_ptr<EtcdStore>> EtcdStore::create(const EtcdOptions& options) {
  if (options.run.empty() || options.run.find('/') != std::string::npos) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "run id",
                 .what = "cannot be part of a key",
                 .got = fmt::format("'{}'", options.run),
                 .expected = "at least one character, and no '/'",
                 .fix = "choose another run id"};
  }
  auto client =
      EtcdClient::create(options.urls, options.access, options.connect_timeout, options.reply_timeout);
  if (!client.ok()) return client.error();
  return std::unique_ptr<EtcdStore>(new EtcdStore(options, std::move(*client)));
}

std::string EtcdStore::key(std::string_view name) const {
  return fmt::format("gossamer/{}/{}", options_.run, name);
}

std::string EtcdStore::chunk_key(std::size_t at) const {
  return key(fmt::format("redo/chunk/{:06}", at / kChunkBytes));
}

Result<std::optional<Generation>> EtcdStore::campaign(const Candidate& self) {
  CHECK(!leads_);
  const auto seen = client_->post(
      "/v3/kv/txn", {{"success", json::array({etcd::get(key("leader")), etcd::get(key("generation"))})}});
  if (!seen.body) return seen.error;
  if (!etcd::only(etcd::range_answer(*seen.body, 0)).is_null()) return std::optional<Generation>();
  const json& last = etcd::only(etcd::range_answer(*seen.body, 1));
  Seat seat{.generation_changed_at = etcd::number(last, "mod_revision")};
  if (!last.is_null()) {
    const std::string text = etcd::bytes(last, "value");
    const auto generation = parse_generation(text);
    if (!generation) return not_our_format(client_->where(), key("generation"), text);
    seat.generation = *generation;
  }
  Result<void> done = grant_lease();
  if (!done.ok()) return done.error();
  const auto won = take(seat, self);
  if (won.ok() && *won) done = finish_redo();
  if (won.ok() && *won && done.ok()) return std::optional<Generation>(generation_);
  // A lead that nobody uses would keep others out until its lease ends; that end comes in any case.
  static_cast<void>(resign().ok());
  if (!won.ok()) return won.error();
  if (!done.ok()) return done.error();
  return std::optional<Generation>();
}

Result<bool> EtcdStore::take(const Seat& seat, const Candidate& self) {
  const Generation next(seat.generation + 1);
  const std::string generation = json{{"format", kFormat}, {"generation", next.value}}.dump();
  const auto answer = client_->post(
      "/v3/kv/txn",
      {{"compare", json::array({etcd::made_at(key("leader"), 0),
                                etcd::changed_at(key("generation"), seat.generation_changed_at)})},
       {"success", json::array({etcd::put_leased(key("leader"), leader_text(self, next), lease_),
                                etcd::put(key("generation"), generation)})},
       {"failure", json::array({etcd::get(key("leader"))})}});
  if (!answer.body) return answer.error;
  if (etcd::member(*answer.body, "succeeded") == json(true)) {
    create_revision_ = etcd::number(etcd::member(*answer.body, "header"), "revision");
  } else {
    // The lease belongs to this campaign: a leader under it is this handle, and the first answer was lost.
    const json& leader = etcd::only(etcd::range_answer(*answer.body, 0));
    if (etcd::member(leader, "lease") != json(lease_)) return false;
    create_revision_ = etcd::number(leader, "create_revision");
  }
  generation_ = next;
  version_ = 1;
  in_doubt_ = false;
  redo_pending_ = true;
  leads_ = true;
  return true;
}

Result<void> EtcdStore::grant_lease() {
  const std::int64_t seconds = std::max<std::int64_t>(1, options_.lease.ns / from_seconds(1).ns);
  const auto answer = client_->post("/v3/lease/grant", {{"TTL", std::to_string(seconds)}});
  if (!answer.body) return answer.error;
  const json& lease = etcd::member(*answer.body, "ID");
  if (!lease.is_string()) return not_etcd(client_->where(), *answer.body);
  lease_ = lease.get<std::string>();
  return {};
}

Result<void> EtcdStore::revoke_lease() {
  if (lease_.empty()) return {};
  const auto answer = client_->post("/v3/lease/revoke", {{"ID", std::exchange(lease_, {})}});
  // A refusal says that the lease has ended on its own.
  return answer.body || !answer.in_doubt ? Result<void>() : Result<void>(answer.error);
}

Result<void> EtcdStore::keep() {
  if (!leads_) return not_leading(client_->where());
  const auto answer = client_->post("/v3/lease/keepalive", {{"ID", lease_}});
  if (!answer.body) return answer.error;
  if (etcd::number(etcd::member(*answer.body, "result"), "TTL") > 0) return {};
  leads_ = false;
  return not_leading(client_->where());
}

Result<void> EtcdStore::resign() {
  leads_ = false;
  return revoke_lease();
}

Result<std::optional<LeaderRecord>> EtcdStore::leader() {
  const auto answer = client_->post("/v3/kv/range", {{"key", etcd::to_base64(key("leader"))}});
  if (!answer.body) return answer.error;
  const json& found = etcd::only(*answer.body);
  if (found.is_null()) return std::optional<LeaderRecord>();
  const std::string text = etcd::bytes(found, "value");
  const json record = read_json<json>(text);
  const json& name = etcd::member(record, "name");
  const json& address = etcd::member(record, "address");
  const json& generation = etcd::member(record, "generation");
  if (!name.is_string() || !address.is_string() || !generation.is_number_unsigned()) {
    return not_our_format(client_->where(), key("leader"), text);
  }
  return std::optional<LeaderRecord>(
      {.candidate = {.name = name.get<std::string>(), .address = address.get<std::string>()},
       .generation = Generation(generation.get<std::uint64_t>())});
}

Result<std::vector<Entry>> EtcdStore::load() {
  if (!leads_) return not_leading(client_->where());
  if (auto done = finish_redo(); !done.ok()) return done.error();
  const std::string prefix = key("state/");
  std::vector<Entry> entries;
  std::string from = prefix;
  std::string revision = "0";  // "0" for the first page, then its revision: all pages are of one moment
  for (;;) {
    if (auto kept = keep(); !kept.ok()) return kept.error();
    json range = etcd::range_below(prefix, from, kPage);
    range["revision"] = revision;
    const auto answer = client_->post(
        "/v3/kv/txn", {{"compare", json::array({etcd::made_at(key("leader"), create_revision_)})},
                       {"success", json::array({etcd::as_operation(range)})}});
    if (!answer.body) return answer.error;
    if (etcd::member(*answer.body, "succeeded") != json(true)) {
      leads_ = false;
      return not_leading(client_->where());
    }
    if (revision == "0") {
      revision = std::to_string(etcd::number(etcd::member(*answer.body, "header"), "revision"));
    }
    const json& page = etcd::range_answer(*answer.body, 0);
    const json& pairs = etcd::member(page, "kvs");
    if (!pairs.is_array() || pairs.empty()) return entries;
    for (const json& pair : pairs) {
      from = etcd::bytes(pair, "key");
      if (!from.starts_with(prefix)) return not_etcd(client_->where(), pair);
      entries.push_back({.key = from.substr(prefix.size()), .value = etcd::bytes(pair, "value")});
    }
    from += '\0';  // the next key that there can be
  }
}

Result<void> EtcdStore::commit(std::span<const Change> changes) {
  if (auto within = check_limits(changes); !within.ok()) return within;
  if (!leads_) return not_leading(client_->where());
  if (auto done = finish_redo(); !done.ok()) return done;
  // etcd takes a key only once in a transaction: the last change of each counts.
  Changes last;
  for (const Change& change : changes) last.insert_or_assign(key("state/") + change.key, change.value);
  std::size_t bytes = 0;
  for (const auto& [name, value] : last) bytes += request_bytes(name, value);
  if (last.size() <= kTransactionOperations && bytes <= kTransactionBytes) return put_changes(last);
  if (auto done = write_redo(encode(last)); !done.ok()) return done;
  return apply_redo(last);
}

Result<void> EtcdStore::put_changes(const Changes& changes) {
  json operations = json::array();
  for (const auto& [name, value] : changes) {
    operations.push_back(value ? etcd::put(name, *value) : etcd::remove(name));
  }
  return guarded(std::move(operations));
}

Result<void> EtcdStore::guarded(json operations) {
  if (in_doubt_) {
    // An empty write of the same version: after it, an older request of that version finds the guard
    // changed whenever it arrives.
    if (auto settled = attempt(json::array()); !settled.ok()) return settled;
  }
  return attempt(std::move(operations));
}

Result<void> EtcdStore::attempt(json operations) {
  operations.push_back(etcd::touch(key("leader")));
  const auto answer =
      client_->post("/v3/kv/txn", {{"compare", json::array({etcd::made_at(key("leader"), create_revision_),
                                                            etcd::has_version(key("leader"), version_)})},
                                   {"success", std::move(operations)},
                                   {"failure", json::array({etcd::get(key("leader"))})}});
  const bool repeated = answer.in_doubt || in_doubt_;
  in_doubt_ = repeated;
  if (!answer.body) return answer.error;
  const json& leader = etcd::only(etcd::range_answer(*answer.body, 0));
  // Nothing else has been sent with this version: this request was carried out, and its first answer was
  // lost.
  const bool done_before = repeated && etcd::number(leader, "create_revision") == create_revision_ &&
                           etcd::number(leader, "version") == version_ + 1;
  if (etcd::member(*answer.body, "succeeded") == json(true) || done_before) {
    in_doubt_ = false;
    ++version_;
    return {};
  }
  leads_ = false;
  return not_leading(client_->where());
}

Result<void> EtcdStore::write_redo(const std::string& text) {
  redo_pending_ = true;
  for (std::size_t at = 0; at < text.size(); at += kChunkBytes) {
    if (auto kept = keep(); !kept.ok()) return kept;
    const auto chunk = std::string_view(text).substr(at, kChunkBytes);
    if (auto done = guarded(json::array({etcd::put(chunk_key(at), chunk)})); !done.ok()) return done;
  }
  return guarded(json::array({etcd::put(key("redo/commit"), std::to_string(text.size()))}));
}

Result<void> EtcdStore::finish_redo() {
  if (!redo_pending_) return {};
  // After a doubtful write the log is read only once nothing older can change it any more.
  if (in_doubt_) {
    if (auto settled = attempt(json::array()); !settled.ok()) return settled;
  }
  const auto text = read_redo();
  if (!text.ok()) return text.error();
  const auto changes = text->empty() ? Changes() : decode(*text);
  if (!changes) return damaged_redo(client_->where(), key("redo/"), {});
  return apply_redo(*changes);
}

Result<std::string> EtcdStore::read_redo() {
  std::string text;
  const auto commit = client_->post("/v3/kv/range", {{"key", etcd::to_base64(key("redo/commit"))}});
  if (!commit.body) return commit.error;
  const json& pair = etcd::only(*commit.body);
  if (pair.is_null()) return text;
  // A size that cannot be read is no missing commit: its log would be thrown away.
  const std::string size = etcd::bytes(pair, "value");
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
  if (error != std::errc() || end != size.data() + size.size() || bytes == 0) {
    return damaged_redo(client_->where(), key("redo/"), fmt::format("redo/commit {}", quote(size)));
  }
  while (text.size() < bytes) {
    if (auto kept = keep(); !kept.ok()) return kept.error();
    const auto chunk = client_->post("/v3/kv/range", {{"key", etcd::to_base64(chunk_key(text.size()))}});
    if (!chunk.body) return chunk.error;
    const std::string piece = etcd::bytes(etcd::only(*chunk.body), "value");
    if (piece.empty()) break;  // what there is does not decode
    text += piece;
  }
  return text;
}

Result<void> EtcdStore::apply_redo(const Changes& changes) {
  Changes some;
  std::size_t bytes = 0;
  for (const auto& [name, value] : changes) {
    bytes += request_bytes(name, value);
    if (some.size() == kTransactionOperations || (bytes > kTransactionBytes && !some.empty())) {
      if (auto kept = keep(); !kept.ok()) return kept;
      if (auto done = put_changes(some); !done.ok()) return done;
      some.clear();
      bytes = request_bytes(name, value);
    }
    some.emplace(name, value);
  }
  if (!some.empty()) {
    if (auto done = put_changes(some); !done.ok()) return done;
  }
  if (auto done = guarded(json::array({etcd::remove_below(key("redo/"))})); !done.ok()) return done;
  redo_pending_ = false;
  return {};
}

}  // namespace gossamer::host
