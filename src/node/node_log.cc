// SPDX-License-Identifier: Apache-2.0
#include "node/node_log.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <variant>

#include "base/node_name.h"
#include "base/printable.h"
#include "net/link/link.h"
#include "node/cluster_status.h"

namespace gossamer::node {
namespace {

constexpr Duration kRefusalEvery{1'000'000'000};
constexpr std::size_t kLines = 1024;       // lines that may wait for the console
constexpr std::size_t kLineBytes = 3'800;  // what fits into a pipe that takes anything at all

// The sink, which the writing thread alone uses.
class ConsoleSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit ConsoleSink(run::Console& console) : console_(console) {}
  ConsoleSink(const ConsoleSink&) = delete;
  ConsoleSink& operator=(const ConsoleSink&) = delete;
  ~ConsoleSink() override { (void)written_.load(std::memory_order_acquire); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!console_.ready()) {
      ++lost_;
      return;
    }
    spdlog::memory_buf_t line;
    if (const std::uint64_t lost = std::exchange(lost_, 0); lost != 0)
      console_.write(fmt::format("({} lines were lost: nobody took them)\n", lost));
    formatter_->format(message, line);
    console_.write({line.data(), std::min(line.size(), kLineBytes)});
    if (line.size() > kLineBytes) console_.write("\n");
    written_.store(true, std::memory_order_release);
  }
  void flush_() override {}

  run::Console& console_;
  std::uint64_t lost_ = 0;
  // The writing thread is done with the formatter before another thread may free it. spdlog's own counters
  // see to that. This says the same in code of ours, since ThreadSanitizer does not see into the library.
  std::atomic<bool> written_ = false;
};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: break;
  }
  return spdlog::level::off;
}

// The patterns. "%v" is what write() makes; time and level are spdlog's.
std::unique_ptr<spdlog::formatter> formatter_of(LogFormat format) {
  using spdlog::pattern_formatter;
  constexpr auto kUtc = spdlog::pattern_time_type::utc;
  switch (format) {
    case LogFormat::kText: break;
    case LogFormat::kLogfmt:
      return std::make_unique<pattern_formatter>("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", kUtc);
    case LogFormat::kJson:
      return std::make_unique<pattern_formatter>(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})", kUtc);
  }
  return std::make_unique<pattern_formatter>("%H:%M:%S %v");
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string in_words(const cluster::RunEvent& event, NodeId self) {
  std::string line = event.epoch.value == 0 ? std::string() : fmt::format("epoch {}: ", event.epoch.value);
  line += event.kind;
  const bool of_another = event.peer.node.value != 0 && event.peer.node != self;
  if (of_another) line += fmt::format(" node {}", event.peer.node.value);
  if (!event.kind.empty() && !event.text.empty()) line += ": ";
  return line + event.text;
}

bool wants_attention(std::string_view kind) {
  constexpr std::array<std::string_view, 13> kKinds{
      "lost",    "accused", "disputed",    "awaits",        "stands_still", "short",       "store_fails",
      "cut_off", "doubt",   "store_error", "enrol_refused", "fenced",       "lane_blocked"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

std::string by_way_of(NodeId via) {
  return via.value == 0 ? std::string() : "through " + certificate_name(via);
}

cluster::RunEvent told(const net::LinkUp& event) {
  return {.kind = "link_up", .peer = event.peer, .text = by_way_of(event.via)};
}
cluster::RunEvent told(const net::LinkBroken& event) {
  return {.kind = "link_broken", .peer = event.peer, .text = event.reason.message()};
}
cluster::RunEvent told(const net::OpenFailed& event) {
  return {.kind = "open_failed", .peer = {event.node, {}}, .text = event.reason.message()};
}
cluster::RunEvent told(const net::BulkUp& event) {
  return {.kind = "bulk_up", .peer = event.peer, .text = by_way_of(event.via)};
}
cluster::RunEvent told(const net::BulkBroken& event) {
  return {.kind = "bulk_broken", .peer = event.peer, .text = event.reason.message()};
}
cluster::RunEvent told(const net::BulkFailed& event) {
  return {.kind = "bulk_failed", .peer = {event.node, {}}, .text = event.reason.message()};
}
cluster::RunEvent told(const net::LaneBlocked& event) {
  const std::string lane = fmt::format("the {} lane has had no connection for {:.0f} s", name(event.lane),
                                       net::LaneState::kBlockedAfter.seconds());
  const std::string reason = event.reason.message();
  return {.kind = "lane_blocked", .peer = event.peer, .text = reason.empty() ? lane : lane + ": " + reason};
}
cluster::RunEvent told(const net::LinkEnded& event) {
  return {.kind = "link_ended", .peer = event.peer, .text = event.reason.message()};
}
cluster::RunEvent told(const net::Incompatible& event) {
  return {.kind = "incompatible", .peer = event.peer, .text = event.reason.message()};
}
cluster::RunEvent told(const net::PeerAtFault& event) {
  return {.kind = "peer_at_fault", .peer = event.peer, .text = event.error.message()};
}
cluster::RunEvent told(const net::Arrived&) { return {}; }

}  // namespace

NodeLog::NodeLog(const run::NodeHost& host, const std::string& directory, const LogOptions& options)
    : format_(options.format),
      file_(host.disk, host.clock, {.metrics = {}, .events = directory + "/events.jsonl"}),
      writer_(std::make_shared<spdlog::details::thread_pool>(kLines, 1)),
      console_(std::make_shared<spdlog::async_logger>("node", std::make_shared<ConsoleSink>(host.console),
                                                      writer_,
                                                      spdlog::async_overflow_policy::overrun_oldest)) {
  const bool quiet = host.verbosity == run::Verbosity::kQuiet;
  console_->set_level(level_of(quiet ? LogLevel::kOff : options.level));
  console_->set_formatter(formatter_of(format_));
}

NodeLog::~NodeLog() = default;

void NodeLog::name(std::string run, NodeId node) {
  run_ = std::move(run);
  node_ = node;
}

void NodeLog::event(const cluster::RunEvent& event) {
  ++counts_[event.kind];
  file_.event(event.kind, {{"run", run_},
                           {"epoch", event.epoch.value},
                           {"node", event.peer.node.value},
                           {"incarnation", event.peer.incarnation.value},
                           {"text", event.text}});
  write(wants_attention(event.kind) ? LogLevel::kWarning : LogLevel::kInfo, event);
}

void NodeLog::refusal(const std::string& from, const Error& why, Epoch epoch, Instant now) {
  if (now < next_refusal_) {
    ++silent_refusals_;
    return;
  }
  next_refusal_ = now + kRefusalEvery;
  const std::uint64_t more = std::exchange(silent_refusals_, 0);
  event({.kind = "enrol_refused",
         .epoch = epoch,
         .text = fmt::format("{}: {}{}", from, why.message(),
                             more == 0 ? "" : fmt::format("; and {} more before it", more))});
}

void NodeLog::awaits(FunctionRef<std::optional<cluster::Awaited>()> lacks, Epoch epoch, Instant now) {
  if (now < next_look_) return;
  next_look_ = now + kLookEvery;
  auto today = lacks();
  if (!today || today->nodes.empty()) return wait_.reset();
  if (!wait_ || wait_->epoch != epoch || wait_->lacks != *today)
    wait_ = {.epoch = epoch, .lacks = *std::move(today), .since = now};
  if (now - wait_->since < kLongWait || std::exchange(wait_->told, true)) return;
  for (const NodeId node : wait_->lacks.nodes) {
    event(
        {.kind = "awaits",
         .peer = {.node = node, .incarnation = {}},
         .epoch = epoch,
         .text = fmt::format("for {:.0f} s it has not sent what this node needs next", kLongWait.seconds())});
  }
}

void NodeLog::remark(LogLevel level, Epoch epoch, std::string_view text) {
  write(level, {.epoch = epoch, .text = std::string(text)});
}

void NodeLog::link(const net::LinkEvent& event, Epoch epoch) {
  // Other events of links are many, and mend themselves. This one may need a person: a firewall, a router.
  const bool blocked = std::holds_alternative<net::LaneBlocked>(event);
  if (!blocked && !console_->should_log(spdlog::level::debug)) return;
  cluster::RunEvent line = std::visit([](const auto& one) { return told(one); }, event);
  line.epoch = epoch;
  if (blocked) return this->event(line);
  if (!line.kind.empty()) write(LogLevel::kDebug, line);
}

void NodeLog::write(LogLevel level, const cluster::RunEvent& event) {
  if (!console_->should_log(level_of(level))) return;
  std::string line;
  if (format_ == LogFormat::kText) {
    line = printable(in_words(event, node_), kAllBytes);
  } else {
    const bool json = format_ == LogFormat::kJson;
    const auto field = [&](const char* key, const std::string& value) {
      if (!line.empty()) line += json ? "," : " ";
      line += json ? fmt::format("\"{}\":{}", key, value) : fmt::format("{}={}", key, value);
    };
    const auto word = [&](const std::string& text) { return json ? quoted(text) : text; };
    field("run", word(run_));
    field("node", fmt::format("{}", node_.value));
    field("epoch", fmt::format("{}", event.epoch.value));
    if (!event.kind.empty()) field("event", word(event.kind));
    if (event.peer.node.value != 0) field("peer", fmt::format("{}", event.peer.node.value));
    if (event.peer.incarnation.value != 0)
      field("peer_incarnation", fmt::format("{}", event.peer.incarnation.value));
    if (!event.text.empty()) field("text", quoted(event.text));
  }
  console_->log(level_of(level), line);
}

}  // namespace gossamer::node
