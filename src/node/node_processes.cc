// SPDX-License-Identifier: Apache-2.0
#include "node/node_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "host/api/files.h"

namespace gossamer::node {
namespace {

// How long the lead may take to say why all nodes have left.
constexpr Duration kAloneTime{3'000'000'000};
// From one start of a node to the next.
constexpr Duration kFirstWait{1'000'000'000};
constexpr Duration kLongestWait{60'000'000'000};
constexpr std::size_t kMostLog = std::size_t{64} << 20;

// Whether a line is "gossamer COMMAND: what has failed". Other lines are no errors: a join line has a token.
bool begins_error(std::string_view line) {
  constexpr std::string_view kProgram = "gossamer ";
  if (!line.starts_with(kProgram)) return false;
  line.remove_prefix(kProgram.size());
  const std::size_t command = line.find_first_of(" :\n");
  return command != std::string_view::npos && line[command] == ':';
}

// Where the last error in `text` begins; the length of `text` if there is none.
std::size_t last_error_in(std::string_view text) {
  for (std::size_t end = text.size(); end > 0;) {
    const std::size_t newline = text.rfind('\n', end - 1);
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (begins_error(text.substr(begin))) return begin;
    end = begin == 0 ? 0 : begin - 1;
  }
  return text.size();
}

// The last error that a process printed, on one line.
std::string last_error(host::Disk& disk, const std::string& log) {
  const auto text = host::read_text(disk, log, kMostLog);
  if (!text.ok()) return "";
  const std::size_t begin = last_error_in(*text);
  std::string line;
  for (const char c : text->substr(begin)) {
    if (c == '\n' && !line.empty()) {
      line += ';';
    } else if (c != '\n' && !(c == ' ' && (line.ends_with(' ') || line.ends_with(';')))) {
      if (line.ends_with(';')) line += ' ';
      line += c;
    }
  }
  if (line.ends_with(';')) line.pop_back();
  return line;
}

}  // namespace

Result<std::unique_ptr<NodeProcesses>> NodeProcesses::start(const run::NodeHost& host, Options options) {
  std::unique_ptr<NodeProcesses> all(new NodeProcesses(host, std::move(options)));
  const Options& own = all->options_;
  if (auto kept = host::replace_private_file(host.disk, all->path("token"), own.token); !kept.ok())
    return kept.error();
  for (std::size_t number = 1; number <= own.nodes; ++number) {
    auto node = all->begin(number);
    if (!node.ok()) return node.error();
    all->nodes_.push_back(*std::move(node));
  }
  return all;
}

// The token is in a file, because everybody on a machine can see arguments. The state that a machine keeps of
// its runs stays in this run's directory.
Result<NodeProcesses::Node> NodeProcesses::begin(std::size_t number) const {
  Node node{.name = fmt::format("{}", number), .log = {}, .process = nullptr, .begun = host_.clock.now()};
  node.log = path(node.name + ".log");
  auto process = host::ChildProcess::start(
      {.program = options_.program,
       .arguments = {"join", host::to_string(options_.at), "--token-file", path("token"), "--in-place",
                     "--dir", path(node.name), "--name", "node " + node.name, "--cores",
                     fmt::format("{}", options_.threads_each)},
       .output = node.log,
       .environment = {{"XDG_STATE_HOME", path("state")}}});
  if (!process.ok()) return process.error();
  node.process = *std::move(process);
  return node;
}

Result<void> NodeProcesses::look(bool at_work) {
  for (Node& node : nodes_) {
    if (auto good = look_at(node, at_work); !good.ok()) return good;
  }
  if (!std::ranges::all_of(nodes_, &Node::told)) return {};
  const Instant now = host_.clock.now();
  if (!alone_since_) alone_since_ = now;
  if (now - *alone_since_ < kAloneTime) return {};
  return Error{.where = path(""),
               .what = "all nodes are gone",
               .got = fmt::format("{} that were killed or left", nodes_.size()),
               .expected = "one that goes on",
               .fix = "go on from the newest checkpoint with: --resume"};
}

Result<void> NodeProcesses::look_at(Node& node, bool at_work) {
  if (node.again_at) {
    if (*node.again_at <= host_.clock.now()) start_again(node);
    return {};
  }
  const auto& end = node.process->end();
  if (!end || node.told) return {};
  constexpr int kSignal = 128;  // nodes that a signal asked to leave have a status above it
  if (options_.starts_again && end->by_signal) {
    host_.warn(fmt::format("node {} was killed and is started again", node.name));
    start_again(node);
    return {};
  }
  if (options_.starts_again && at_work) {
    start_again_later(node, failed(node, *end).got);
    return {};
  }
  const bool left = end->status == 0 || end->status > kSignal;
  if (!left || !at_work) return failed(node, *end);
  node.told = true;
  host_.warn(
      fmt::format("node {} {}; the others go on", node.name, end->by_signal ? "was killed" : "has left"));
  return {};
}

// A node that has worked for a while has not failed again and again.
void NodeProcesses::start_again_later(Node& node, const std::string& why) const {
  const Instant now = host_.clock.now();
  const bool lasted = now - node.begun >= kLongestWait;
  node.wait = lasted ? kFirstWait : std::clamp({2 * node.wait.ns}, kFirstWait, kLongestWait);
  node.again_at = now + node.wait;
  host_.warn(fmt::format("node {} has ended, and is started again in {:.0f} s: {}", node.name,
                         node.wait.seconds(), why));
}

void NodeProcesses::start_again(Node& node) const {
  auto again = begin(static_cast<std::size_t>(&node - nodes_.data()) + 1);
  if (!again.ok()) return start_again_later(node, again.error().message());
  again->wait = node.wait;
  node = *std::move(again);
}

Error NodeProcesses::failed(const Node& node, const host::ChildProcess::End& end) const {
  const bool kind_is_known = end.status >= 1 && end.status <= static_cast<int>(ErrorKind::kRefused);
  const std::string said = last_error(host_.disk, node.log);
  return {.kind = kind_is_known ? static_cast<ErrorKind>(end.status) : ErrorKind::kFailed,
          .where = node.log,
          .what = fmt::format("node {} has ended", node.name),
          .got = said.empty() ? fmt::format("status {}", end.status) : said,
          .expected = "that it ends with the run",
          .fix = options_.starts_again
                     ? "look into that file"
                     : "look into that file; go on from the newest checkpoint with: --resume"};
}

void NodeProcesses::end_within(Duration time) {
  const Instant at = host_.clock.now() + time;
  if (!kill_at_ || at < *kill_at_) kill_at_ = at;
}

void NodeProcesses::kill() {
  for (Node& node : nodes_) node.process->kill();
}

bool NodeProcesses::all_ended() {
  if (kill_at_ && *kill_at_ <= host_.clock.now()) kill();
  bool all = true;
  for (Node& node : nodes_) all = node.process->end().has_value() && all;
  return all;
}

std::string NodeProcesses::as_seen(std::string cause) {
  for (Node& node : nodes_) {
    const auto& end = node.process->end();
    const std::string lost = "node " + node.name + " was lost";
    const std::size_t at = cause.find(lost);
    const std::size_t after = at + lost.size();
    if (!end || at == std::string::npos || (after < cause.size() && cause[after] != ',')) continue;
    cause.replace(at, lost.size(), "node " + node.name + (end->by_signal ? " was killed" : " left"));
  }
  return cause;
}

NodeProcesses::Cost NodeProcesses::cost() const {
  Cost cost;
  for (const Node& node : nodes_) {
    cost.cpu_seconds += node.process->cpu_seconds();
    const auto& end = node.process->end();
    if (end) cost.peak_rss_bytes = std::max(cost.peak_rss_bytes, end->peak_rss_bytes);
  }
  return cost;
}

}  // namespace gossamer::node
