// SPDX-License-Identifier: Apache-2.0
//
// gossamer join: this machine becomes a node of a run.
#include "commands/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "apps/cli/network_wait.h"
#include "base/human_bytes.h"
#include "cluster/admission/token.h"
#include "host/api/files.h"
#include "host/posix/environment.h"
#include "host/posix/route.h"
#include "host/posix/signals.h"
#include "node/admission/credentials.h"
#include "node/member_node.h"

namespace gossamer::cli {
namespace {

constexpr std::size_t kMaxName = 255;
constexpr std::size_t kMaxToken = 4096;
constexpr std::uint64_t kLeastMemory = 16'000'000;
constexpr std::uint64_t kMostCores = 4096;
constexpr std::uint32_t kMostThreads = 1024;

struct JoinFlags {
  CommonFlags common;
  ReportFlags report;
  std::string coordinator;
  std::string token;
  std::string token_file;
  std::string directory;
  std::string name;
  std::string listen;
  std::string advertise;
  std::string memory;
  std::string cores;
  bool nat = false;
  bool in_place = false;
};

Parser make_join_parser(const Command& self, JoinFlags& flags) {
  Parser parser({self.name, self.help, self.example});
  parser.add_option("COORDINATOR", flags.coordinator, "where the run's coordinator listens, HOST:PORT")
      .required()
      .type_name("");
  parser.add_option("--token", flags.token, "needed the first time on this machine").type_name("T");
  parser.add_option("--token-file", flags.token_file, "the same from a file, or from standard input for -")
      .type_name("FILE");
  parser.add_option("--dir", flags.directory, "this node's credentials and events; default: by run")
      .type_name("DIR");
  parser.add_option("--name", flags.name, "of this node, for people; default: the machine's")
      .type_name("NAME");
  parser
      .add_option("--listen", flags.listen,
                  "where other members come, and to the next port too; default: free ones")
      .type_name("HOST:PORT");
  parser
      .add_option("--advertise", flags.advertise,
                  "how they reach this machine; default: as it reaches the coordinator")
      .type_name("NAME");
  parser.add_flag("--nat", flags.nat, "nobody can reach this machine: it opens all connections");
  parser.add_flag("--in-place", flags.in_place,
                  "use the coordinator's files under its own paths, where this machine has them");
  parser.add_option("--cores", flags.cores, "to work with; default: all it may use").type_name("N");
  parser.add_option("--memory", flags.memory, "to hold parts of the run in; default: all it may use")
      .type_name("SIZE");
  add_report(parser, flags.report);
  add_quiet(parser, flags.common);
  return parser;
}

// Checks a token before anything is made for it. `where` is the flag or file that it came from.
Result<std::optional<std::string>> checked(std::string token, std::string where) {
  if (auto decoded = cluster::decode_token(token); !decoded.ok()) {
    Error error = decoded.error();
    error.where = std::move(where);
    return error;
  }
  return std::optional(std::move(token));
}

// The token of the flags. A file may have it, because everybody on a machine can see arguments.
Result<std::optional<std::string>> token_of(Context& context, const JoinFlags& flags) {
  if (flags.token_file.empty()) {
    if (flags.token.empty()) return std::optional<std::string>();
    return checked(flags.token, "--token");
  }
  if (!flags.token.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--token-file",
                 .what = "there are two tokens",
                 .expected = "--token or --token-file"};
  }
  const std::string path = flags.token_file == "-" ? "/dev/stdin" : flags.token_file;
  auto text = host::read_text(context.disk, path, kMaxToken);
  if (!text.ok()) return text.error();
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r' || text->back() == ' '))
    text->pop_back();
  return checked(*std::move(text), path);
}

// Puts into `options` where to listen and how others reach this machine.
Result<void> choose_addresses(const JoinFlags& flags, node::MemberOptions& options) {
  if (flags.nat) {
    if (flags.listen.empty() && flags.advertise.empty()) return {};
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--nat",
                 .what = "it says that nobody can reach this machine, and other flags say how",
                 .expected = "--nat alone, or --listen and --advertise",
                 .fix = "leave --nat out where a port is forwarded to this machine"};
  }
  if (!flags.listen.empty()) {
    auto listen = parse_at(flags.listen, "--listen");
    if (!listen.ok()) return listen.error();
    options.listen = *listen;
  }
  if (!flags.advertise.empty()) {
    auto advertise = parse_host(flags.advertise, "--advertise");
    if (!advertise.ok()) return advertise.error();
    options.advertise = *advertise;
  }
  const bool everywhere = node::is_wildcard(options.listen.host);
  if (options.advertise.empty() && !everywhere) options.advertise = options.listen.host;
  return {};
}

// Looks up how others reach this machine, where no flag says it. Its network may not be there yet if it has
// joined before. An address that is used for the first time may be wrong.
Result<void> find_way(Context& context, const JoinFlags& flags, node::MemberOptions& options) {
  if (flags.nat) return {};
  if (options.advertise.empty()) {
    Result<host::Route> route = host::route_to(options.coordinator);
    const auto joined = node::has_membership(context.disk, options.directory.path);
    const auto attempt = [&] {
      route = host::route_to(options.coordinator);
      return route.ok() ? Result<void>() : route.error();
    };
    if (!route.ok() && joined.ok() && *joined) static_cast<void>(wait_for_network(context, attempt));
    if (!route.ok()) return route.error();
    options.advertise = route->own;
    options.towards = route->to;
    if (options.listen.host.empty()) options.listen.host = route->own;
  }
  if (options.listen.host.empty()) options.listen.host = "0.0.0.0";
  return {};
}

// With less the coordinator would wait for other members, without a word here. Most who write it have left
// out a unit.
Result<std::uint64_t> parse_memory(const std::string& text) {
  auto memory = parse_size(text, "--memory");
  if (!memory.ok() || *memory >= kLeastMemory) return memory;
  return Error{.kind = ErrorKind::kUsage,
               .where = "--memory",
               .what = "too little to hold a part of any run in",
               .got = fmt::format("'{}': {}", text, human_bytes(*memory)),
               .expected = fmt::format("at least {}, which a member's process takes by itself",
                                       human_bytes(kLeastMemory)),
               .fix = "give a size with its unit, such as 8G, or leave the flag out"};
}

Result<node::MemberOptions> member_options(Context& context, const JoinFlags& flags) {
  node::MemberOptions options;
  auto coordinator = parse_at(flags.coordinator, "COORDINATOR");
  if (!coordinator.ok()) return coordinator.error();
  options.coordinator = *coordinator;
  auto token = token_of(context, flags);
  if (!token.ok()) return token.error();
  options.token = *token;
  options.name = flags.name.empty() ? host::machine_name() : flags.name;
  if (options.name.size() > kMaxName) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--name",
                 .what = "the name is too long",
                 .got = fmt::format("{} bytes", options.name.size()),
                 .expected = fmt::format("at most {}", kMaxName)};
  }
  options.cores = static_cast<std::uint32_t>(host::usable_cores());
  if (!flags.cores.empty()) {
    const auto cores = parse_count(flags.cores, {.flag = "--cores", .min = 1, .max = kMostCores});
    if (!cores.ok()) return cores.error();
    options.cores = static_cast<std::uint32_t>(*cores);
  }
  options.program = program_name();
  options.in_place = flags.in_place;
  const auto report = report_options(context, flags.report);
  if (!report.ok()) return report.error();
  options.report = *report;
  if (!flags.memory.empty()) {
    const auto memory = parse_memory(flags.memory);
    if (!memory.ok()) return memory.error();
    options.memory_bytes = *memory;
  }
  if (auto chosen = choose_addresses(flags, options); !chosen.ok()) return chosen.error();
  const auto state = state_directory();
  if (!state.ok()) return state.error();
  auto directory =
      flags.directory.empty()
          ? node::take_node_directory(
                context.disk, {.state = *state, .coordinator = options.coordinator, .token = options.token})
          : node::take_directory(context.disk, flags.directory);
  if (!directory.ok()) return directory.error();
  options.directory = std::move(*directory);
  if (auto found = find_way(context, flags, options); !found.ok()) return found.error();
  return options;
}

Result<ExitStatus> join(Context& context, const JoinFlags& flags) {
  auto options = member_options(context, flags);
  if (!options.ok()) return options.error();
  CommonFlags own = flags.common;
  own.threads = fmt::format("{}", std::min(options->cores, kMostThreads));
  auto machine = Machine::create(context, own);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  if (options->memory_bytes == 0) options->memory_bytes = host.compute.memory_limit_bytes();

  const std::string directory = absolute_path(options->directory.path);
  auto member = commands::JoiningMember::start(host, context.engines, std::move(*options), directory);
  if (!member.ok()) return member.error();
  const host::PosixSignals signals;  // up to here, Ctrl-C ends the process at once
  if (auto done = member->run(signals); !done.ok()) return done.error();
  return signals.stop_requested() ? 128 + signals.signal_number() : 0;
}

Result<ExitStatus> run_join(Context& context, const Command& self, std::span<const std::string> arguments) {
  JoinFlags flags;
  auto parser = make_join_parser(self, flags);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  return join(context, flags);
}

}  // namespace

Command join_command() {
  return {
      .name = "join",
      .help = "adds this machine to a run, until Ctrl-C or the end of the run",
      .example =
          "Ctrl-C gives this machine's part of the work to others, then leaves. It needs no token to join\n"
          "again: credentials stay in --dir, or below $XDG_STATE_HOME or ~/.local/state.\n"
          "Exit status 4: the token or certificate is not accepted.\n\n"
          "Example:\n"
          "  gossamer join 10.0.0.1:7070 --token gossamer1.CmQ... --cores 4 --memory 8G\n"
          "  gossamer join 10.0.0.1:7070",
      .run = run_join};
}

}  // namespace gossamer::cli
