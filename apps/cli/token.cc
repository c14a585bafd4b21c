// SPDX-License-Identifier: Apache-2.0
//
// gossamer token create | list | revoke: which machines may join a run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "base/printable.h"
#include "cluster/admission/token_book.h"
#include "node/cluster_status.h"
#include "node/questions.h"
#include "node/shared_tokens.h"
#include "run/lead_file.h"

namespace gossamer::cli {
namespace {

constexpr std::uint64_t kMostUses = 1'000'000;

struct TokenFlags {
  CommonFlags common;
  std::string directory;
  std::string id;
  std::string note;
  std::string valid = "24h";
  std::string uses;
};

void add_directory(Parser& parser, TokenFlags& flags) {
  parser.add_option("DIR", flags.directory, "the coordinator's --out directory").required().type_name("");
}

Result<Machine> one_thread(Context& context, const TokenFlags& flags) {
  CommonFlags own = flags.common;
  own.threads = "1";
  return Machine::create(context, own);
}

// Exchanges tokens, or says why not. A token made here is of use even when no coordinator leads just now.
void exchange_or_say(const run::NodeHost& host, const std::string& directory) {
  if (auto done = node::exchange_tokens(host, directory); !done.ok()) host.warn(done.error().message());
}

// How many nodes the token lets in. Without --uses: as many as the run waits for, if its directory says so.
Result<std::optional<std::uint64_t>> uses_of(Context& context, const TokenFlags& flags) {
  if (!flags.uses.empty()) {
    const auto uses = parse_count(flags.uses, {.flag = "--uses", .min = 1, .max = kMostUses});
    if (!uses.ok()) return uses.error();
    return std::optional(*uses);
  }
  const auto file = run::read_lead_file(context.disk, flags.directory);
  if (!file.ok() || file->engine.empty()) return std::optional<std::uint64_t>();
  return std::optional(file->first);
}

std::string nodes_text(std::uint64_t count) { return fmt::format("{} node{}", count, count == 1 ? "" : "s"); }

Result<ExitStatus> create(Context& context, const Command& self, std::span<const std::string> arguments) {
  TokenFlags flags;
  Parser parser({self.name, self.help, self.example});
  add_directory(parser, flags);
  parser.add_option("--valid", flags.valid, "how long it may be used to join; default 24h").type_name("TIME");
  parser.add_option("--uses", flags.uses, "nodes that it may let in; default: as many as --first of the run")
      .type_name("N");
  parser.add_option("--note", flags.note, "for whom, shown by 'token list'").type_name("TEXT").may_be_empty();
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  const auto seconds = parse_seconds(flags.valid, "--valid");
  if (!seconds.ok()) return seconds.error();
  const auto address = run_address(context, flags.directory);
  if (!address.ok()) return address.error();
  const auto uses = uses_of(context, flags);
  if (!uses.ok()) return uses.error();
  auto machine = one_thread(context, flags);
  if (!machine.ok()) return machine.error();
  const auto token =
      node::make_token((*machine).host(), flags.directory,
                       {.at = address->coordinator, .seconds = *seconds, .note = flags.note, .uses = *uses});
  if (!token.ok()) return token.error();
  if (*uses && flags.uses.empty())
    (*machine).host().say(fmt::format("it lets in {}; --uses N for another number", nodes_text(**uses)));
  exchange_or_say((*machine).host(), flags.directory);
  context.output.line(
      fmt::format("gossamer join {} --token {}", host::to_string(address->coordinator), *token));
  return 0;
}

std::string word(const cluster::TokenRecord& record, std::int64_t now) {
  if (record.revoked) return "revoked";
  return now >= record.expires ? "expired" : "good";
}

using LetIn = std::map<std::string, std::uint64_t>;

// How many nodes the tokens have let in. Nothing: no coordinator answers just now.
std::optional<LetIn> let_in(const run::NodeHost& host, const std::string& directory,
                            const host::Endpoint& coordinator) {
  const auto status = node::ask_status(host, coordinator, {.directory = directory});
  return status.ok() ? std::optional(node::let_in_by_tokens(*status)) : std::nullopt;
}

std::optional<std::uint64_t> spent(const std::optional<LetIn>& nodes, const cluster::TokenRecord& record) {
  if (!nodes) return std::nullopt;
  const auto found = nodes->find(record.id);
  return found == nodes->end() ? 0 : found->second;
}

std::string uses_text(const cluster::TokenRecord& record, const std::optional<std::uint64_t>& used) {
  const std::string uses = record.uses ? nodes_text(*record.uses) : "any number";
  return used ? fmt::format("{} of {}", *used, uses) : uses;
}

nlohmann::ordered_json to_json(const cluster::TokenRecord& record, const std::optional<std::uint64_t>& used,
                               std::int64_t now) {
  nlohmann::ordered_json json = {{"id", record.id},           {"state", word(record, now)},
                                 {"created", record.created}, {"expires", record.expires},
                                 {"revoked", nullptr},        {"note", record.note},
                                 {"uses", nullptr},           {"let_in", nullptr}};
  if (record.revoked) json["revoked"] = *record.revoked;
  if (record.uses) json["uses"] = *record.uses;
  if (used) json["let_in"] = *used;
  return json;
}

Result<ExitStatus> list(Context& context, const Command& self, std::span<const std::string> arguments) {
  TokenFlags flags;
  Parser parser({self.name, self.help, self.example});
  add_directory(parser, flags);
  add_json(parser, flags.common, "one JSON object a line");
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  const auto address = run_address(context, flags.directory);
  if (!address.ok()) return address.error();
  auto machine = one_thread(context, flags);
  if (!machine.ok()) return machine.error();
  exchange_or_say((*machine).host(), flags.directory);
  const auto nodes = let_in((*machine).host(), flags.directory, address->coordinator);
  const auto now = static_cast<std::int64_t>(context.clock.wall_seconds());
  const auto tokens = cluster::TokenBook(context.disk, flags.directory + "/tokens").list();
  if (!tokens.ok()) return tokens.error();
  for (const cluster::TokenRecord& record : tokens->records) {
    if (flags.common.json) {
      context.output.line(to_json(record, spent(nodes, record), now)
                              .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } else {
      context.output.line(fmt::format("{}  {:<7}  {:<15}  until {}  {}", record.id, word(record, now),
                                      uses_text(record, spent(nodes, record)),
                                      cluster::utc_text(record.expires), visible(record.note)));
    }
  }
  if (!tokens->unreadable.empty()) return tokens->unreadable.front();
  return 0;
}

Result<ExitStatus> revoke(Context& context, const Command& self, std::span<const std::string> arguments) {
  TokenFlags flags;
  Parser parser({self.name, self.help, self.example});
  add_directory(parser, flags);
  parser.add_option("ID", flags.id, "as 'token list' shows it").required().type_name("");
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  if (const auto address = run_address(context, flags.directory); !address.ok()) return address.error();
  auto machine = one_thread(context, flags);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  exchange_or_say(host, flags.directory);  // the token may have been made at another coordinator
  const auto now = static_cast<std::int64_t>(context.clock.wall_seconds());
  const auto revoked = cluster::TokenBook(context.disk, flags.directory + "/tokens").revoke(flags.id, now);
  if (!revoked.ok()) return revoked.error();
  // Where another coordinator leads, the token is good until that one knows.
  if (auto told = node::exchange_tokens(host, flags.directory); !told.ok()) return told.error();
  context.output.line(fmt::format("{} joins nobody any more; nodes that joined with it stay", revoked->id));
  return 0;
}

}  // namespace

Command token_create_command() {
  return {.name = "token create",
          .help = "makes a token with which machines join a run; prints the line to type there",
          .example =
              "Machines that have the token may join until it has let in N nodes, expires or is revoked.\n\n"
              "Example:\n"
              "  gossamer token create runs/fleet --uses 3 --valid 7d --note 'the machines in the library'",
          .run = create};
}

Command token_list_command() {
  return {.name = "token list",
          .help = "lists the tokens of a run, without their secrets",
          .example = "Example:\n  gossamer token list runs/fleet",
          .run = list};
}

Command token_revoke_command() {
  return {.name = "token revoke",
          .help = "makes a token worthless, at once",
          .example = "Example:\n  gossamer token revoke runs/fleet 0123456789abcdef",
          .run = revoke};
}

}  // namespace gossamer::cli
