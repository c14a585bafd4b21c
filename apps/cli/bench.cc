// SPDX-License-Identifier: Apache-2.0
//
// gossamer bench measures the program:
//
//   sparse-step    time of a training step at a given shape
//   sparse-search  time of the exact search among all labels
//   stage          time and memory of a stage of a language model
//   kernels        speed of every kernel
//   links          what links between machines reach
#include <fmt/format.h>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "base/human_bytes.h"
#include "commands/bench/bench_kernels.h"
#include "commands/bench/bench_links.h"
#include "commands/bench/bench_sparse_search.h"
#include "commands/bench/bench_sparse_step.h"
#include "commands/bench/bench_stage.h"

namespace gossamer::cli {
namespace {

std::string to_text(const commands::BenchSparseSearchResult& r) {
  return fmt::format(
      "{:.3f} ms a query in blocks, {:.3f} ms CPU, {:.0f} % of the rows multiplied; "
      "alone {:.2f} ms (median), {:.2f} ms CPU; peak memory {}\n",
      r.wall_ms_per_query, r.cpu_ms_per_query, 100 * r.screened, r.single_wall_ms, r.single_cpu_ms,
      human_bytes(r.peak_rss_bytes));
}

std::string to_json(const commands::BenchKernelsResult& result, const commands::BenchKernels& options,
                    const run::NodeHost& /*host*/) {
  return commands::to_json(result, options);
}

std::string to_json(const commands::BenchLinksResult& result, const commands::BenchLinks& options,
                    const run::NodeHost& /*host*/) {
  return commands::to_json(result, options);
}

enum class Cores { kOne, kAsked };

// Parses the words of the command into Options and writes what `measure` makes of them.
template <class Options, class Measure>
Result<ExitStatus> run_bench(Context& context, const Command& self, std::span<const std::string> arguments,
                             Cores cores, const settings::KeyTable<Options>& keys, const Measure& measure) {
  CommonFlags flags;
  std::vector<std::string> settings;
  Options options;
  const std::string footer =
      fmt::format("Keys and defaults:\n{}\n{}", settings::help_lines(keys.defaults()), self.example);
  Parser parser({self.name, self.help, footer});
  parser.add_option("KEYS", settings, "key=value: what to change").type_name("");
  if (cores == Cores::kAsked) add_threads(parser, flags);
  add_json(parser, flags, "one JSON object");
  add_quiet(parser, flags);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  for (const std::string& setting : settings) {
    if (auto done = keys.set_word(options, setting); !done.ok()) return done.error();
  }
  if (cores == Cores::kOne) flags.threads = "1";
  auto machine = Machine::create(context, flags);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  auto result = measure(host, options);
  if (!result.ok()) return result.error();
  context.output.write(flags.json ? to_json(*result, options, host) + "\n" : to_text(*result));
  return 0;
}

Result<ExitStatus> run_kernels(Context& context, const Command& self,
                               std::span<const std::string> arguments) {
  return run_bench(context, self, arguments, Cores::kOne, commands::bench_kernels_keys(),
                   commands::bench_kernels);
}

Result<ExitStatus> run_links(Context& context, const Command& self, std::span<const std::string> arguments) {
  return run_bench(context, self, arguments, Cores::kOne, commands::bench_links_keys(),
                   commands::bench_links);
}

Result<ExitStatus> run_sparse_search(Context& context, const Command& self,
                                     std::span<const std::string> arguments) {
  return run_bench(context, self, arguments, Cores::kAsked, commands::bench_sparse_search_keys(),
                   commands::bench_sparse_search);
}

Result<ExitStatus> run_sparse_step(Context& context, const Command& self,
                                   std::span<const std::string> arguments) {
  return run_bench(context, self, arguments, Cores::kAsked, commands::bench_sparse_step_keys(),
                   commands::bench_sparse_step);
}

Result<ExitStatus> run_stage(Context& context, const Command& self, std::span<const std::string> arguments) {
  return run_bench(context, self, arguments, Cores::kAsked, commands::bench_stage_keys(),
                   commands::bench_torch_stage);
}

}  // namespace

Command bench_sparse_step_command() {
  return {.name = "bench sparse-step",
          .help = "time of one training step on made-up records (default: the shape of Amazon-670K)",
          .example = "Example:\n  gossamer bench sparse-step batch=1024 sampled=2048 --threads 1 --json",
          .run = run_sparse_step};
}

Command bench_sparse_search_command() {
  return {.name = "bench sparse-search",
          .help = "time of the exact search for the best labels on made-up rows and queries",
          .example = "Example:\n  gossamer bench sparse-search labels=100000 hidden=256 --threads 1 --json",
          .run = run_sparse_search};
}

Command bench_stage_command() {
  return {.name = "bench stage",
          .help = "time and memory of one microbatch in a stage of a language model",
          .example =
              "Needs libtorch: make torch.\n\nExample:\n  gossamer bench stage preset=gpt2-small layers=3 "
              "trials=5 --threads 1 --json",
          .run = run_stage};
}

Command bench_links_command() {
  return {.name = "bench links",
          .help = "what links reach between these machines; without peers, within this one",
          .example =
              "The same keys but `node` on every machine; DIR is copied there once it is made.\n\n"
              "Example:\n"
              "  gossamer bench links bytes=1000000\n"
              "  gossamer bench links node=1 peers=10.0.0.1:7100,10.0.0.2:7100 authority=DIR --json",
          .run = run_links};
}

Command bench_kernels_command() {
  return {.name = "bench kernels",
          .help = "speed of every kernel on every instruction set of this CPU, and its share of the peak",
          .example = "Example:\n  gossamer bench kernels hidden=256 --json",
          .run = run_kernels};
}

}  // namespace gossamer::cli
