// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/machine.h"

#include <utility>

#include "apps/cli/arguments.h"
#include "host/posix/environment.h"

namespace gossamer::cli {

void add_threads(Parser& parser, CommonFlags& flags) {
  parser.add_option("--threads", flags.threads, "worker threads; default: every core this process may use")
      .type_name("N");
}

void add_json(Parser& parser, CommonFlags& flags, const std::string& what) {
  parser.add_flag("--json", flags.json, what);
}

void add_quiet(Parser& parser, CommonFlags& flags) {
  parser.add_flag("--quiet", flags.quiet, "no progress, only results, warnings and errors");
}

Result<const kernels::Kernels*> choose_kernels() {
  const std::string wanted = host::environment("GOSSAMER_ISA").value_or("auto");
  auto isa = kernels::parse_isa(wanted.empty() ? "auto" : wanted);
  if (!isa.ok()) {
    Error error = isa.error();
    error.where = "GOSSAMER_ISA";
    return error;
  }
  return &kernels::kernels_for(*isa);
}

Result<Machine> Machine::create(Context& context, const CommonFlags& flags) {
  int workers = host::usable_cores();
  if (!flags.threads.empty()) {
    auto given = parse_count(flags.threads, {.flag = "--threads", .min = 1, .max = 1024});
    if (!given.ok()) return given.error();
    workers = static_cast<int>(*given);
  }
  auto kernels = choose_kernels();
  if (!kernels.ok()) return kernels.error();
  auto compute = host::PosixCompute::create(workers);
  if (!compute.ok()) return compute.error();
  const auto verbosity = flags.quiet ? run::Verbosity::kQuiet : run::Verbosity::kNormal;
  return Machine(context, std::move(*compute), **kernels, verbosity);
}

run::NodeHost Machine::host() const {
  return {.disk = context_->disk,
          .clock = context_->clock,
          .compute = *compute_,
          .kernels = *kernels_,
          .console = context_->console,
          .verbosity = verbosity_};
}

}  // namespace gossamer::cli
