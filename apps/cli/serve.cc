// SPDX-License-Identifier: Apache-2.0
//
// gossamer serve: answers queries over HTTP until a signal comes, or nothing can answer any more.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>
#include <utility>

#include "apps/cli/answering.h"
#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "commands/engine/prediction_service.h"
#include "commands/engine/query_session.h"
#include "host/api/endpoint.h"
#include "host/posix/http/http_server.h"
#include "host/posix/signals.h"

namespace gossamer::cli {
namespace {

struct ServeFlags {
  CommonFlags common;
  AnswerFlags answer;
  std::string listen;
  std::string connections = "256";
  std::string waiting = "128";
  std::string body_bytes = "1048576";
  std::string timeout = "5";
};

// HOST:PORT into `options`.
Result<void> parse_listen(const std::string& text, host::HttpOptions& options) {
  const auto endpoint = host::parse_endpoint(text);
  if (!endpoint.ok()) {
    Error error = endpoint.error();
    error.where = "--listen";
    return error;
  }
  options.host = endpoint->host;
  options.port = endpoint->port;
  return {};
}

// A flag's text, where it may lie, and where its value goes.
struct Limit {
  const std::string& text;
  CountRule rule;
  std::size_t& value;
};

Result<host::HttpOptions> http_options(const ServeFlags& flags, std::size_t& top) {
  host::HttpOptions options{.endpoint = "/predict"};
  if (auto done = parse_listen(flags.listen, options); !done.ok()) return done.error();
  std::size_t seconds = 0;
  const std::array<Limit, 5> limits = {
      {{flags.answer.top, {.flag = "--top", .min = 1, .max = commands::kMostLabels}, top},
       {flags.connections, {.flag = "--connections", .min = 1, .max = 900}, options.max_connections},
       {flags.waiting, {.flag = "--waiting", .min = 1, .max = 100'000}, options.max_waiting},
       {flags.body_bytes, {.flag = "--body-bytes", .min = 1, .max = 1 << 30}, options.max_body_bytes},
       {flags.timeout, {.flag = "--timeout", .min = 1, .max = 3600}, seconds}}};
  for (const Limit& limit : limits) {
    auto value = parse_count(limit.text, limit.rule);
    if (!value.ok()) return value.error();
    limit.value = *value;
  }
  options.timeout = from_seconds(static_cast<double>(seconds));
  return options;
}

// Serves until a signal comes, or the session has ended, and every request that was sent before is answered.
// Returns why the session has ended, if it has: only a new start helps then.
std::optional<Error> serve_until_end(host::HttpServer& server, commands::QuerySession& session,
                                     const host::PosixSignals& signals) {
  commands::PredictionService service(session);
  const Duration patience = from_milliseconds(50);  // how late a signal may be noticed
  const auto answer = [&service](std::span<const host::HttpRequest> requests) {
    return service.answer(requests);
  };
  std::optional<Error> ended;
  while (server.serve(commands::kRequestsAtOnce, patience, answer)) {
    if (!ended && !signals.stop_requested()) ended = session.ended();
    if (ended || signals.stop_requested()) server.close();
  }
  return ended;
}

Result<ExitStatus> serve(Context& context, const ServeFlags& flags) {
  std::size_t top = 0;
  auto options = http_options(flags, top);
  if (!options.ok()) return options.error();
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  const host::PosixSignals signals;
  const auto model =
      model_to_open(context, flags.answer, top, [&signals] { return signals.stop_requested(); });
  if (!model.ok()) return model.error();
  auto answering = open_answering(context, host, &commands::EngineEntry::serve, *model);
  if (signals.stop_requested()) return 128 + signals.signal_number();
  if (!answering.ok()) return answering.error();
  options->pages = {{"/healthz", {.body = "{\"status\":\"ok\"}\n"}},
                    {"/model", {.body = (*answering)->describe(flags.answer.directory) + "\n"}}};
  auto server = host::HttpServer::start(*options);
  if (!server.ok()) return server.error();
  const std::string shown =
      options->host.find(':') == std::string::npos ? options->host : "[" + options->host + "]";
  context.output.line(
      fmt::format("serving {} on http://{}:{}/predict", flags.answer.directory, shown, (*server)->port()));
  if (auto flushed = context.output.flush(); !flushed.ok()) return flushed.error();
  if (auto ended = serve_until_end(**server, **answering, signals)) return *std::move(ended);
  return 128 + signals.signal_number();
}

Result<ExitStatus> run_serve(Context& context, const Command& self, std::span<const std::string> arguments) {
  ServeFlags flags;
  Parser parser({self.name, self.help, self.example});
  add_answering(parser, flags.answer);
  parser.add_option("--listen", flags.listen, "where; port 0 takes a free one and prints it")
      .required()
      .type_name("HOST:PORT");
  parser
      .add_option("--top", flags.answer.top, "labels to answer with, unless ?top=K says otherwise; default 5")
      .type_name("K");
  parser.add_option("--connections", flags.connections, "requests at once, 503 beyond; default 256")
      .type_name("N");
  parser.add_option("--waiting", flags.waiting, "requests that may wait, 503 beyond; default 128")
      .type_name("N");
  parser.add_option("--body-bytes", flags.body_bytes, "largest body, 413 beyond; default 1048576")
      .type_name("N");
  parser.add_option("--timeout", flags.timeout, "half the seconds that a body or a reply may take; default 5")
      .type_name("S");
  add_threads(parser, flags.common);
  add_quiet(parser, flags.common);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  return serve(context, flags);
}

}  // namespace

Command serve_command() {
  return {.name = "serve",
          .help = "answers queries over HTTP as predict does, until Ctrl-C or SIGTERM",
          .example =
              "POST /predict[?top=K]: application/json with one query or an array of them, or\n"
              "application/x-ndjson or text/plain with one query a line. GET /healthz, GET /model.\n"
              "No encryption, no passwords: for a trusted network, or behind a proxy that has them.\n\n"
              "Example:\n"
              "  gossamer serve runs/dictionary --listen 127.0.0.1:8080\n"
              "  curl -H 'Content-Type: application/json' -d '{\"text\": \"fear of spiders\"}' \\\n"
              "    'http://127.0.0.1:8080/predict?top=3'",
          .run = run_serve};
}

}  // namespace gossamer::cli
