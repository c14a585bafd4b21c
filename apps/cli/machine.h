// SPDX-License-Identifier: Apache-2.0
//
// The parts that most commands share: the flags --threads, --json and --quiet,
// and the machine made from them.
//
// Thread rule: one thread, which then owns the machine's Compute.
#pragma once

#include <memory>
#include <string>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "base/result.h"
#include "host/posix/compute.h"
#include "run/node_host.h"

namespace gossamer::cli {

struct CommonFlags {
  std::string threads;  // empty: every core this process may use
  bool json = false;
  bool quiet = false;
};

// Each adds one flag, bound to `flags`.
void add_threads(Parser& parser, CommonFlags& flags);
void add_json(Parser& parser, CommonFlags& flags, const std::string& what);
void add_quiet(Parser& parser, CommonFlags& flags);

class Machine {
 public:
  // Starts the workers. Kernels are the CPU's best or those of $GOSSAMER_ISA. kUsage for wrong flags.
  [[nodiscard]] static Result<Machine> create(Context& context, const CommonFlags& flags);
  [[nodiscard]] run::NodeHost host() const;

 private:
  Machine(Context& context, std::unique_ptr<host::PosixCompute> compute, const kernels::Kernels& kernels,
          run::Verbosity verbosity)
      : context_(&context), compute_(std::move(compute)), kernels_(&kernels), verbosity_(verbosity) {}

  Context* context_;
  std::unique_ptr<host::PosixCompute> compute_;
  const kernels::Kernels* kernels_;
  run::Verbosity verbosity_;
};

// The kernels of this CPU, or of $GOSSAMER_ISA when it is set (kUsage: unknown, or not supported here).
[[nodiscard]] Result<const kernels::Kernels*> choose_kernels();

}  // namespace gossamer::cli
