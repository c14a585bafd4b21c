// SPDX-License-Identifier: Apache-2.0
//
// The list of commands, in the order of the general help.
#include "apps/cli/command.h"

namespace gossamer::cli {

std::vector<Command> all_commands() {
  return {train_command(),
          eval_command(),
          predict_command(),
          export_command(),
          serve_command(),
          data_import_command(),
          data_inspect_command(),
          bench_kernels_command(),
          bench_links_command(),
          bench_sparse_search_command(),
          bench_sparse_step_command(),
          bench_stage_command(),
          coordinator_command(),
          join_command(),
          token_create_command(),
          token_list_command(),
          token_revoke_command(),
          node_expel_command(),
          status_command(),
          stop_command(),
          simulate_command(),
          doctor_command(),
          version_command()};
}

}  // namespace gossamer::cli
