// SPDX-License-Identifier: Apache-2.0
//
// gossamer eval: how good a model is on a test set.
#include <fmt/format.h>

#include "apps/cli/answering.h"
#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "commands/predict/prediction.h"

namespace gossamer::cli {
namespace {

struct EvalFlags {
  CommonFlags common;
  std::string directory;
  std::string data;
  std::string skip_bad = "0";
  bool net_alone = false;
  std::string baseline;
  std::string retrieval = "exact";
  std::string nodes;
  std::string join_at;
};

Result<commands::Scorer> scorer_of(const EvalFlags& flags) {
  if (flags.net_alone) return commands::Scorer::kNet;
  if (flags.baseline.empty()) return commands::Scorer::kFused;
  if (flags.baseline == "nearest") return commands::Scorer::kNearestRows;
  if (flags.baseline == "frequent") return commands::Scorer::kFrequent;
  return Error{.kind = ErrorKind::kUsage,
               .where = "--baseline",
               .what = "no such baseline",
               .got = "'" + flags.baseline + "'",
               .expected = "nearest or frequent",
               .fix = "leave it out to measure the model itself"};
}

// Opens the model to measure. With --nodes, `fleet` has the network.
Result<sparse_engine::Model> open_measured(Context& context, const run::NodeHost& host,
                                           const EvalFlags& flags, sparse_engine::Retrieval retrieval,
                                           std::unique_ptr<commands::ServingFleet>& fleet) {
  if (flags.nodes.empty() && flags.join_at.empty()) return commands::open_model(host, flags.directory);
  if (!flags.baseline.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--nodes",
                 .what = "baselines do not ask the net",
                 .got = "--baseline " + flags.baseline,
                 .expected = "one of the two",
                 .fix = "leave one of the flags out"};
  }
  auto nodes = open_model_nodes(context, host,
                                {.directory = flags.directory,
                                 .nodes = flags.nodes,
                                 .join_at = flags.join_at,
                                 .net_alone = flags.net_alone,
                                 .retrieval = retrieval});
  if (!nodes.ok()) return nodes.error();
  fleet = std::move(nodes->fleet);
  return std::move(nodes->model);
}

Result<ExitStatus> evaluate(Context& context, const EvalFlags& flags) {
  auto skip_bad = parse_count(flags.skip_bad, {.flag = "--skip-bad", .min = 0, .max = UINT32_MAX});
  if (!skip_bad.ok()) return skip_bad.error();
  const auto scorer = scorer_of(flags);
  if (!scorer.ok()) return scorer.error();
  const auto retrieval = commands::parse_retrieval(flags.retrieval);
  if (!retrieval.ok()) return retrieval.error();
  if (*retrieval != sparse_engine::Retrieval::kExact && !flags.baseline.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--retrieval",
                 .what = "baselines do not ask the net",
                 .got = "lsh with --baseline " + flags.baseline,
                 .expected = "one of the two",
                 .fix = "leave one of the flags out"};
  }
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  const Instant begin = host.clock.now();
  std::unique_ptr<commands::ServingFleet> fleet;
  auto model = open_measured(context, host, flags, *retrieval, fleet);
  if (!model.ok()) return model.error();
  auto source = commands::find_source(host.disk, flags.data, commands::test_format(*model));
  if (!source.ok()) return source.error();
  const Instant loaded = host.clock.now();
  const bool exact = *retrieval == sparse_engine::Retrieval::kExact;
  const commands::EvaluateRequest request{
      .source = *source,
      .skip_bad = *skip_bad,
      .scorer = *scorer,
      .retrieval = exact ? *retrieval : sparse_engine::Retrieval::kHashedMeasured};
  const auto predictor = fleet ? commands::fleet_predictor(*fleet, *model) : nullptr;
  auto metrics = predictor ? commands::evaluate_model(host, *model, *predictor, request)
                           : commands::evaluate_model(host, *model, request);
  if (!metrics.ok()) return metrics.error();
  const double seconds = (host.clock.now() - loaded).seconds();
  const double rate = seconds > 0 ? static_cast<double>((*metrics).samples) / seconds : 0;
  if (flags.common.json) {
    context.output.line(
        fmt::format("{{\"metrics\":{},\"samples\":{},\"samples_without_labels\":{},\"samples_per_second\":{},"
                    "\"load_seconds\":{},"
                    "\"eval_seconds\":{},\"cpu_seconds\":{},\"peak_rss_bytes\":{}}}",
                    commands::metrics_json(*metrics), (*metrics).samples, (*metrics).without_labels, rate,
                    (loaded - begin).seconds(), seconds, host.clock.process_cpu().seconds(),
                    host.compute.peak_rss_bytes()));
  } else {
    context.output.line(commands::metrics_text(*metrics));
    context.output.line(fmt::format("{:.0f} records a second", rate));
  }
  return 0;
}

Result<ExitStatus> run(Context& context, const Command& self, std::span<const std::string> arguments) {
  EvalFlags flags;
  Parser parser({self.name, self.help, self.example});
  parser.add_option("DIR", flags.directory, "of a finished run, or its model/").required().type_name("");
  parser.add_option("--data", flags.data, "test records: a file, or a directory of 'data import'")
      .required()
      .type_name("FILE");
  parser.add_flag("--net-alone", flags.net_alone, "without the training records that the model keeps");
  parser
      .add_option("--baseline", flags.baseline,
                  "nearest (labels of the nearest training records) or frequent (labels seen most): what the "
                  "model has to beat")
      .type_name("NAME");
  parser
      .add_option("--retrieval", flags.retrieval,
                  "exact, or lsh (hash tables find the net's labels; what they miss is measured as "
                  "retrieval@10 and @100)")
      .type_name("NAME");
  add_nodes(parser, flags.nodes, flags.join_at);
  parser.add_option("--skip-bad", flags.skip_bad, "leave out up to N bad lines; default 0").type_name("N");
  add_threads(parser, flags.common);
  add_json(parser, flags.common, "one JSON object; metrics in percent, unrounded");
  add_quiet(parser, flags.common);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  return evaluate(context, flags);
}

}  // namespace

Command eval_command() {
  return {.name = "eval",
          .help = "measures a model on test records",
          .example = "Example:\n  gossamer eval runs/first --data test.txt.gz --json",
          .run = run};
}

}  // namespace gossamer::cli
