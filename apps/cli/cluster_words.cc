// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/cluster_words.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <system_error>

#include "base/hex.h"
#include "base/shell_word.h"
#include "host/posix/environment.h"
#include "node/admission/random_text.h"
#include "node/questions.h"
#include "run/resume_command.h"
#include "run/run_directory.h"

namespace gossamer::cli {
namespace {

// How long a look waits whether anything answers at an address.
constexpr Duration kProbe{5'000'000'000};
constexpr std::int64_t kMostSeconds = std::int64_t{10} * 365 * 24 * 3600;

Error wrong(std::string_view text, std::string_view flag, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = std::string(flag),
          .what = "cannot use the value",
          .got = fmt::format("'{}'", text),
          .expected = std::move(expected)};
}

// A number and the unit behind it.
struct Quantity {
  double number = 0;
  std::string_view unit;
};
std::optional<Quantity> split(std::string_view text) {
  Quantity quantity;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc()) return std::nullopt;
  quantity.unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  return quantity;
}

}  // namespace

Result<host::Endpoint> parse_at(std::string_view text, std::string_view word) {
  auto endpoint = host::parse_endpoint(text);
  if (endpoint.ok()) return endpoint;
  Error error = endpoint.error();
  error.where = word;
  return error;
}

Result<std::string> parse_host(const std::string& text, std::string_view flag) {
  constexpr std::size_t kMost = 255;
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  constexpr std::string_view kOfIpv6 = "0123456789abcdefABCDEF:.%";
  const bool ipv6 = std::count(text.begin(), text.end(), ':') >= 2;
  const bool good = text.find_first_not_of(ipv6 ? kOfIpv6 : kOfNames) == std::string::npos;
  if (good && text.size() <= kMost && !node::is_wildcard(text)) return text;
  return wrong(text, flag, "a name or address without a port, such as 10.0.0.1, fd00::1 or host.example");
}

Result<std::uint64_t> parse_size(std::string_view text, std::string_view flag) {
  const Error error = wrong(text, flag, "a size such as 800M, 1.5G or 2GiB");
  const auto quantity = split(text);
  if (!quantity) return error;
  std::string_view unit = quantity->unit;
  if (unit.ends_with('B')) unit.remove_suffix(1);
  double base = 1000;
  if (unit.ends_with('i')) {
    base = 1024;
    unit.remove_suffix(1);
    if (unit.empty()) return error;
  }
  constexpr std::string_view kUnits = "KMGT";
  double bytes = quantity->number;
  if (!unit.empty()) {
    const std::size_t power = kUnits.find(unit);
    if (power == std::string_view::npos || unit.size() != 1) return error;
    for (std::size_t i = 0; i <= power; ++i) bytes *= base;
  }
  if (!(bytes >= 1 && bytes < 9e18)) return error;
  return static_cast<std::uint64_t>(bytes);
}

Result<std::int64_t> parse_seconds(std::string_view text, std::string_view flag) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array<Unit, 4> kUnits{{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 24 * 3600}}};
  const auto quantity = split(text);
  for (const Unit& unit : kUnits) {
    if (!quantity || quantity->unit != unit.name) continue;
    const double seconds = quantity->number * unit.seconds;
    if (seconds >= 1 && seconds <= static_cast<double>(kMostSeconds))
      return static_cast<std::int64_t>(seconds);
  }
  return wrong(text, flag, "a time from 1s to ten years, such as 90s, 30m, 24h or 7d");
}

void add_report(Parser& parser, ReportFlags& flags) {
  parser.add_option("--log-level", flags.level, "what is told: debug, info (default), warning, error, off")
      .type_name("LEVEL");
  parser
      .add_option("--log-format", flags.format,
                  "text, logfmt or json; default: text on a terminal, logfmt elsewhere")
      .type_name("FORMAT");
  parser.add_option("--metrics", flags.metrics, "serves http://HOST:PORT/metrics for Prometheus; default: no")
      .type_name("HOST:PORT");
}

std::string report_words(const ReportFlags& flags) {
  std::string words;
  if (flags.level != ReportFlags().level) words += " --log-level " + shell_word(flags.level);
  if (!flags.format.empty()) words += " --log-format " + shell_word(flags.format);
  if (!flags.metrics.empty()) words += " --metrics " + shell_word(flags.metrics);
  return words;
}

Result<node::ReportOptions> report_options(const Context& context, const ReportFlags& flags) {
  using node::LogFormat;
  using node::LogLevel;
  static const std::map<std::string, LogLevel, std::less<>> levels{{"debug", LogLevel::kDebug},
                                                                   {"info", LogLevel::kInfo},
                                                                   {"warning", LogLevel::kWarning},
                                                                   {"error", LogLevel::kError},
                                                                   {"off", LogLevel::kOff}};
  static const std::map<std::string, LogFormat, std::less<>> formats{
      {"text", LogFormat::kText}, {"logfmt", LogFormat::kLogfmt}, {"json", LogFormat::kJson}};
  node::ReportOptions options;
  const auto level = levels.find(flags.level);
  if (level == levels.end()) return wrong(flags.level, "--log-level", "debug, info, warning, error or off");
  options.log.level = level->second;
  const std::string_view usual = context.console.terminal() ? "text" : "logfmt";
  const auto format = formats.find(flags.format.empty() ? usual : flags.format);
  if (format == formats.end()) return wrong(flags.format, "--log-format", "text, logfmt or json");
  options.log.format = format->second;
  if (flags.metrics.empty()) return options;
  const auto metrics = parse_at(flags.metrics, "--metrics");
  if (!metrics.ok()) return metrics.error();
  options.metrics = *metrics;
  return options;
}

Result<std::string> state_directory() {
  const auto own = host::environment("XDG_STATE_HOME");
  if (own && own->starts_with('/')) return *own + "/gossamer";
  const auto home = host::environment("HOME");
  if (home && home->starts_with('/')) return *home + "/.local/state/gossamer";
  return Error{.kind = ErrorKind::kUsage,
               .where = "HOME",
               .what = "there is no place to keep what this machine knows of its runs",
               .expected = "an absolute path in HOME or XDG_STATE_HOME",
               .fix = "set one of the two variables"};
}

Result<std::string> own_directory(std::string_view what) {
  const auto state = state_directory();
  if (!state.ok()) return state.error();
  constexpr std::size_t kRandomBytes = 8;
  return fmt::format("{}/{}/{}-{}", absolute_path(*state), what, ::getpid(),
                     to_hex(node::random_bytes(kRandomBytes)));
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

std::string program_name() { return "gossamer " GOSSAMER_VERSION; }

Result<node::RunAddress> run_address(Context& context, std::string& directory) {
  directory = node::coordinator_directory(context.disk, directory);
  auto address = node::load_address(context.disk, directory);
  if (!address.ok() || address->control) return address;
  return Error{.kind = ErrorKind::kUsage,
               .where = directory,
               .what = "this is a node's directory",
               .expected = "the coordinator's",
               .fix = "run this on the coordinator's machine, with its --out directory"};
}

void add_target(Parser& parser, TargetFlags& flags) {
  parser.add_option("TARGET", flags.target, "HOST:PORT of the coordinator, or a run's directory")
      .required()
      .type_name("");
}

void add_directory_and_token(Parser& parser, TargetFlags& flags) {
  parser.add_option("--dir", flags.directory, "directory with the credentials to use").type_name("DIR");
  parser.add_option("--token", flags.token, "ask with this token instead of credentials").type_name("T");
}

Result<node::Target> find_target(Context& context, const TargetFlags& flags) {
  const auto state = state_directory();
  if (!state.ok()) return state.error();
  node::AskPlace place{
      .state = *state, .target = flags.target, .token = std::nullopt, .directory = flags.directory};
  if (!flags.token.empty()) place.token = flags.token;
  auto found = node::find_target(context.disk, place);
  const auto at = host::parse_endpoint(flags.target);
  if (found.ok() || !at.ok()) return found;
  const auto answers = node::expect_answer(*at, kProbe);
  return answers.ok() ? found : answers.error();
}

Error not_answered(Context& context, const TargetFlags& flags, const node::Target& target, Error error) {
  if (error.kind != ErrorKind::kFailed || !target.listens ||
      node::expect_answer(*target.listens, kProbe).ok())
    return error;
  std::string run = flags.target;
  while (run.size() > 1 && run.ends_with('/')) run.pop_back();
  const std::string own = node::lead_directory("");
  if (run.ends_with(own)) run.resize(run.size() - own.size());
  const auto finished = context.disk.exists(run::RunPaths(run).summary());
  if (finished.ok() && *finished) {
    error.fix = "nothing is left to ask: its figures are in " + run::RunPaths(run).summary();
    error.what = "the run is finished, and no coordinator runs for it";
  } else {
    const bool trains = node::coordinator_directory(context.disk, run) != run;
    error.fix = "continue with: " + (trains ? run::resume_command(context.disk, run)
                                            : "gossamer coordinator --resume --out " + shell_word(run));
    error.what = "no coordinator runs for this run";
  }
  error.where = run;
  error.got = "nothing answers at " + host::to_string(*target.listens);
  error.expected = "a process that leads it";
  return error;
}

}  // namespace gossamer::cli
