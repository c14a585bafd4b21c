// SPDX-License-Identifier: Apache-2.0
//
// gossamer node expel: nodes that may take part no more.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <string>
#include <vector>

#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "node/questions.h"

namespace gossamer::cli {
namespace {

struct NodeFlags {
  std::string directory;
  std::string node;
  std::string token;
};

// The nodes that the user means: one by its number, or all of a token.
Result<node::ExpelWish> wish_of(const NodeFlags& flags) {
  if (flags.node.empty() == flags.token.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "node expel",
                 .what = flags.node.empty() ? "no node is named" : "a node and a token are named",
                 .expected = "N, or --token ID"};
  }
  if (!flags.token.empty()) return node::ExpelWish{.token = flags.token};
  const auto number =
      parse_count(flags.node, {.flag = "N", .min = 2, .max = std::numeric_limits<std::int64_t>::max()});
  if (!number.ok()) return number.error();
  return node::ExpelWish{.nodes = {NodeId(*number)}};
}

Result<ExitStatus> expel(Context& context, const Command& self, std::span<const std::string> arguments) {
  NodeFlags flags;
  Parser parser({self.name, self.help, self.example});
  parser.add_option("DIR", flags.directory, "the coordinator's --out directory").required().type_name("");
  parser.add_option("N", flags.node, "the node's number, as 'status' shows it").type_name("");
  parser.add_option("--token", flags.token, "all nodes that this token let in, as 'token list' shows its id")
      .type_name("ID");
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  const auto wish = wish_of(flags);
  if (!wish.ok()) return wish.error();
  if (const auto address = run_address(context, flags.directory); !address.ok()) return address.error();
  CommonFlags own;
  own.threads = "1";
  auto machine = Machine::create(context, own);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  const auto outcome = node::ask_expel(host, flags.directory, *wish);
  if (!outcome.ok()) return outcome.error();
  for (const NodeId node : outcome->nodes)
    context.output.line(fmt::format("node {} is expelled", node.value));
  for (const std::string& token : outcome->tokens)
    context.output.line(
        fmt::format("token {} joins nobody any more; other nodes that it let in stay", token));
  return 0;
}

}  // namespace

Command node_expel_command() {
  return {
      .name = "node expel",
      .help = "takes nodes out of a run for ever, at once",
      .example =
          "The others go on without the node. Its certificate is refused from then on, and the token that\n"
          "let it in is revoked. Only on the coordinator's machine, while the run is led.\n\n"
          "Example:\n"
          "  gossamer node expel runs/fleet 3\n"
          "  gossamer node expel runs/fleet --token 0123456789abcdef",
      .run = expel};
}

}  // namespace gossamer::cli
