// SPDX-License-Identifier: Apache-2.0
#include "node/node_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "host/api/files.h"
#include "node/places.h"
#include "node/questions.h"

namespace gossamer::node {
namespace {

// How long all members may have ended before the coordinator. When a run fails, its coordinator ends by
// itself, with the reason, soon after its members.
constexpr Duration kAloneTime{3'000'000'000};
// How long nodes may take to leave, because they may have much to write.
constexpr Duration kLeaveTime{120'000'000'000};
constexpr std::size_t kMostLog = std::size_t{64} << 20;

// Whether a line is "gossamer COMMAND: what has failed". A line without the colon is no error:
// the join line has a token in it.
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
  if (own.lead) {
    if (auto joined = all->join(*own.lead); !joined.ok()) return joined.error();
    return all;
  }
  auto coordinator =
      all->begin("coordinator", {"coordinator", own.run + "/run.toml", "--listen", "127.0.0.1:0", "--first",
                                 fmt::format("{}", own.nodes), "--out", all->path("coordinator")});
  if (!coordinator.ok()) return coordinator.error();
  all->coordinator_ = *std::move(coordinator);
  return all;
}

Result<NodeProcesses::Node> NodeProcesses::begin(const std::string& name,
                                                 std::vector<std::string> arguments) const {
  Node node{.name = name, .log = path(name + ".log"), .process = nullptr};
  // The state that a machine keeps of its runs stays in this run's directory.
  auto process = host::ChildProcess::start({.program = options_.program,
                                            .arguments = std::move(arguments),
                                            .output = node.log,
                                            .environment = {{"XDG_STATE_HOME", path("state")}}});
  if (!process.ok()) return process.error();
  node.process = *std::move(process);
  return node;
}

Result<void> NodeProcesses::start_members() {
  const std::string directory = path("coordinator");
  const auto there = host_.disk.exists(directory + "/address.json");
  if (!there.ok() || !*there) return {};
  const auto address = load_address(host_.disk, directory);
  if (!address.ok()) return address.error();
  const auto token =
      make_token(host_, directory, {.at = address->coordinator, .note = "for this run's nodes"});
  if (!token.ok()) return token.error();
  return join({.at = address->coordinator, .token = *token});
}

Result<void> NodeProcesses::join(const Options::Lead& lead) {
  led_at_ = lead.at;
  if (auto kept = host::replace_private_file(host_.disk, path("token"), lead.token); !kept.ok()) return kept;
  for (std::size_t i = 1; i <= options_.nodes; ++i) {
    auto member = begin_member(i);
    if (!member.ok()) return member.error();
    members_.push_back(*std::move(member));
  }
  return {};
}

Result<NodeProcesses::Node> NodeProcesses::begin_member(std::size_t i) const {
  const std::string name = fmt::format("{}", i);
  return begin(name, {"join", host::to_string(*led_at_), "--token-file", path("token"), "--dir", path(name),
                      "--name", "node " + name, "--cores", fmt::format("{}", options_.threads_each)});
}

Result<void> NodeProcesses::look(bool stepping) {
  if (coordinator_) {
    if (const auto& end = coordinator_->process->end()) return failed(*coordinator_, *end);
  }
  if (members_.empty()) return start_members();
  for (Node& member : members_) {
    if (auto good = look_at_member(member, stepping); !good.ok()) return good;
  }
  if (!std::ranges::all_of(members_, &Node::told)) return {};
  const Instant now = host_.clock.now();
  if (!alone_since_) alone_since_ = now;
  if (now - *alone_since_ < kAloneTime) return {};
  return Error{.where = path(""),
               .what = "all nodes are gone",
               .got = fmt::format("{} that were killed or left", members_.size()),
               .expected = "one that goes on",
               .fix = "go on from the newest checkpoint with: --resume"};
}

Result<void> NodeProcesses::look_at_member(Node& member, bool stepping) {
  const auto& end = member.process->end();
  if (!end || member.told) return {};
  constexpr int kSignal = 128;  // nodes that a signal asked to leave have a status above it
  if (options_.lead && end->by_signal) {
    host_.say(fmt::format("node {} was killed and is started again", member.name));
    auto again = begin_member(static_cast<std::size_t>(&member - members_.data()) + 1);
    if (!again.ok()) return again.error();
    member = *std::move(again);
    return {};
  }
  const bool left = end->status == 0 || end->status > kSignal;
  if (!left || !stepping) return failed(member, *end);
  member.told = true;
  host_.say(
      fmt::format("node {} {}; the others go on", member.name, end->by_signal ? "was killed" : "has left"));
  return {};
}

Error NodeProcesses::failed(const Node& node, const host::ChildProcess::End& end) const {
  const bool kind_is_known = end.status >= 1 && end.status <= static_cast<int>(ErrorKind::kRefused);
  const std::string said = last_error(host_.disk, node.log);
  return {.kind = kind_is_known ? static_cast<ErrorKind>(end.status) : ErrorKind::kFailed,
          .where = node.log,
          .what = fmt::format("{}{} has ended", coordinator_ && &node == &*coordinator_ ? "the " : "node ",
                              node.name),
          .got = said.empty() ? fmt::format("status {}", end.status) : said,
          .expected = "that it ends with the run",
          .fix = options_.lead ? "look into that file"
                               : "look into that file; go on from the newest checkpoint with: --resume"};
}

void NodeProcesses::stop() {
  if (kill_at_) return;
  kill_at_ = host_.clock.now() + (options_.lead ? kAloneTime : kLeaveTime);
  if (options_.lead) return;
  const auto address = load_address(host_.disk, path("coordinator"));
  const bool asked =
      address.ok() && ask_stop(host_, address->coordinator, {.directory = path("coordinator")}).ok();
  if (!asked) kill();
}

void NodeProcesses::kill() {
  for (Node& member : members_) member.process->kill();
  if (coordinator_) coordinator_->process->kill();
}

bool NodeProcesses::all_ended() {
  if (kill_at_ && *kill_at_ <= host_.clock.now()) kill();
  bool all = !coordinator_ || coordinator_->process->end().has_value();
  for (Node& member : members_) all = member.process->end().has_value() && all;
  return all;
}

std::string NodeProcesses::as_seen(std::string cause) {
  for (Node& member : members_) {
    const auto& end = member.process->end();
    const std::string lost = "node " + member.name + " was lost";
    const std::size_t at = cause.find(lost);
    const std::size_t after = at + lost.size();
    if (!end || at == std::string::npos || (after < cause.size() && cause[after] != ',')) continue;
    cause.replace(at, lost.size(), "node " + member.name + (end->by_signal ? " was killed" : " left"));
  }
  return cause;
}

NodeProcesses::Cost NodeProcesses::cost() const {
  Cost cost;
  const auto add = [&](const Node& node) {
    cost.cpu_seconds += node.process->cpu_seconds();
    const auto& end = node.process->end();
    if (!end) return;
    cost.peak_rss_bytes = std::max(cost.peak_rss_bytes, end->peak_rss_bytes);
  };
  if (coordinator_) add(*coordinator_);
  for (const Node& member : members_) add(member);
  return cost;
}

}  // namespace gossamer::node
