// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/answering.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "commands/train_fleet/lead_runner.h"
#include "engines/sparse/model/model_file.h"
#include "host/posix/child_process.h"

namespace gossamer::cli {
namespace {

Error cannot_do(std::string what, std::string got, std::string fix) {
  return {.kind = ErrorKind::kUsage,
          .where = "--nodes",
          .what = std::move(what),
          .got = std::move(got),
          .expected = "exact lists",
          .fix = std::move(fix)};
}

// Reading parts of a large model takes a while. Nodes from elsewhere come when they like.
constexpr double kStartSeconds = 1800;
constexpr double kUntilTold = 1e8;

std::function<Result<void>(const host::Endpoint&, const std::string&)> print_join(Context& context) {
  return [&context](const host::Endpoint& at, const std::string& token) {
    context.console.write(fmt::format("gossamer join {} --token {}\n", host::to_string(at), token));
    return Result<void>();
  };
}

}  // namespace

void add_nodes(Parser& parser, std::string& nodes, std::string& join_at) {
  parser.add_option("--nodes", nodes, "processes of this machine that have the model in parts; exact lists")
      .type_name("N");
  parser
      .add_option(
          "--join-at", join_at,
          "where the N nodes join from other machines, which have DIR under the same path; prints how")
      .type_name("HOST:PORT");
}

void add_answering(Parser& parser, AnswerFlags& flags) {
  parser.add_option("DIR", flags.directory, "of a finished run, or its model/").required().type_name("");
  parser.add_flag("--net-alone", flags.net_alone, "without the training records that the model keeps");
  parser
      .add_option("--retrieval", flags.retrieval,
                  "exact, or lsh (hash tables find the net's labels; 'eval' measures what they miss)")
      .type_name("NAME");
  add_nodes(parser, flags.nodes, flags.join_at);
}

Result<Answering> open_answering(Context& context, const run::NodeHost& host, const AnswerFlags& flags,
                                 std::size_t top, const std::function<bool()>& stop) {
  const auto retrieval = commands::parse_retrieval(flags.retrieval);
  if (!retrieval.ok()) return retrieval.error();
  if (!flags.nodes.empty() || !flags.join_at.empty()) {
    auto nodes = open_model_nodes(context, host,
                                  {.directory = flags.directory,
                                   .nodes = flags.nodes,
                                   .join_at = flags.join_at,
                                   .net_alone = flags.net_alone,
                                   .retrieval = *retrieval,
                                   .stop = stop});
    if (!nodes.ok()) return nodes.error();
    auto session = commands::PredictSession::create(
        std::move(nodes->model), top,
        [&](const sparse_engine::Model& model) { return commands::fleet_predictor(*nodes->fleet, model); });
    return Answering{.fleet = std::move(nodes->fleet), .session = std::move(session)};
  }
  auto model = commands::open_model(host, flags.directory);
  if (!model.ok()) return model.error();
  auto session = commands::PredictSession::create(
      host, std::move(*model),
      {.top = top,
       .scorer = flags.net_alone ? commands::Scorer::kNet : commands::Scorer::kFused,
       .retrieval = *retrieval});
  if (!session.ok()) return session.error();
  return Answering{.fleet = nullptr, .session = *std::move(session)};
}

Result<ModelNodes> open_model_nodes(Context& context, const run::NodeHost& host,
                                    const NodesRequest& request) {
  if (request.nodes.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--join-at",
                 .what = "it is not known how many nodes are to come",
                 .expected = "--nodes N beside it",
                 .fix = "add --nodes"};
  }
  const auto nodes =
      parse_count(request.nodes, {.flag = "--nodes", .min = 1, .max = commands::kMostOwnNodes});
  if (!nodes.ok()) return nodes.error();
  std::optional<host::Endpoint> join_at;
  if (!request.join_at.empty()) {
    const auto at = parse_at(request.join_at, "--join-at");
    if (!at.ok()) return at.error();
    if (node::is_wildcard(at->host)) {
      return Error{.kind = ErrorKind::kUsage,
                   .where = "--join-at",
                   .what = "others cannot reach this address",
                   .got = request.join_at,
                   .expected = "an address of this machine",
                   .fix = "write the one by which the nodes reach it"};
    }
    join_at = *at;
  }
  const auto found = commands::find_model(host, absolute_path(request.directory));
  if (!found.ok()) return found.error();
  const auto opened = sparse_engine::open_model_header(host.disk, *found);
  if (!opened.ok()) return opened.error();
  if (request.retrieval != sparse_engine::Retrieval::kExact)
    return cannot_do("nodes have no hash tables for queries", "--retrieval lsh",
                     "leave one of the flags out");
  const bool fuses = opened->header.instances && !request.net_alone;
  auto model = sparse_engine::load_model(host.disk, *found, sparse_engine::Reading::kWithoutNetwork);
  if (!model.ok()) return model.error();
  const auto state = state_directory();
  if (!state.ok()) return state.error();
  const auto threads = static_cast<std::size_t>(host.compute.workers());
  auto fleet = commands::ServingFleet::start(
      host, *opened,
      {.directory = fmt::format("{}/serving/{}", absolute_path(*state), ::getpid()),
       .nodes = *nodes,
       .threads_each = std::max<std::size_t>(1, threads / *nodes),
       .instances = fuses ? sparse_engine::PartInstances::kShare : sparse_engine::PartInstances::kNone,
       .program = host::own_program(),
       .program_name = program_name(),
       .engine = std::string(kServingEngine),
       .start_patience = from_seconds(join_at ? kUntilTold : kStartSeconds),
       .join_at = join_at,
       .joined_at = join_at ? print_join(context) : nullptr,
       .stop = request.stop});
  if (!fleet.ok()) return fleet.error();
  return ModelNodes{.model = *std::move(model), .fleet = *std::move(fleet)};
}

}  // namespace gossamer::cli
