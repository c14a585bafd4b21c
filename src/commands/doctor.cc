// SPDX-License-Identifier: Apache-2.0
#include "commands/doctor.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "base/human_bytes.h"
#include "host/api/files.h"

namespace gossamer::commands {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

Finding check_cpu(const run::NodeHost& host) {
  const kernels::Isa used = host.kernels.isa;
  const kernels::Isa best = kernels::best_isa();
  std::string all;
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (kernels::supported(isa)) all += fmt::format("{}{}", all.empty() ? "" : " ", kernels::name(isa));
  }
  Finding finding{.name = "cpu", .health = Health::kGood, .found = {}, .advice = {}};
  finding.found = fmt::format("uses {} of: {}", kernels::name(used), all);
  if (used != best) {
    finding.health = Health::kAdvice;
    finding.advice = fmt::format("unset GOSSAMER_ISA to use {}", kernels::name(best));
  } else if (best < kernels::Isa::kAvx2) {
    finding.health = Health::kAdvice;
    finding.advice = "training is several times faster on a CPU with AVX2 or AVX-512";
  }
  return finding;
}

Finding check_cores(const run::NodeHost& host) {
  const int workers = host.compute.workers();
  Finding finding{.name = "cores", .health = Health::kGood, .found = {}, .advice = {}};
  finding.found = fmt::format("{} usable", workers);
  if (workers == 1) {
    finding.health = Health::kAdvice;
    finding.advice =
        "more cores help; look at taskset and at the container's CPU quota if the machine has more";
  }
  return finding;
}

Finding check_memory(const run::NodeHost& host) {
  const std::uint64_t limit = host.compute.memory_limit_bytes();
  // Weights and two moments of Amazon-670K at width 128, with room for data.
  const std::uint64_t enough = 2 * kGiB;
  Finding finding{.name = "memory", .health = Health::kGood, .found = {}, .advice = {}};
  finding.found = fmt::format("{} for this process, room for about {} million parameters in training",
                              human_bytes(limit), run::human_count(limit / 16 / 1'000'000));
  if (limit < enough) {
    finding.health = Health::kAdvice;
    finding.advice = "large runs need more; raise the container's memory limit or lower model.hidden";
  }
  return finding;
}

Finding check_huge_pages(const run::NodeHost& host) {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  Finding finding{.name = "huge pages", .health = Health::kAdvice, .found = {}, .advice = {}};
  const auto text = host::read_text(host.disk, path);
  if (!text.ok()) {
    finding.found = "unknown";
    finding.advice = fmt::format("{} cannot be read; nothing to do if this is a restricted container", path);
    return finding;
  }
  const std::size_t open = (*text).find('[');
  const std::size_t close = (*text).find(']');
  const std::string mode =
      open < close && close != std::string::npos ? (*text).substr(open + 1, close - open - 1) : "unknown";
  finding.found = fmt::format("transparent huge pages: {}", mode);
  if (mode == "always" || mode == "madvise") {
    finding.health = Health::kGood;
  } else {
    finding.advice = fmt::format("as root: echo madvise > {} (tables are read faster)", path);
  }
  return finding;
}

// Checks that time passes at all, and finds the smallest step between two readings that differ.
Finding check_clock(const run::NodeHost& host) {
  Finding finding{.name = "clock", .health = Health::kGood, .found = {}, .advice = {}};
  Duration smallest = from_seconds(1);
  Instant before = host.clock.now();
  for (int i = 0; i < 20'000; ++i) {
    const Instant now = host.clock.now();
    if (now < before) {
      finding.health = Health::kBad;
      finding.found = "the monotonic clock went backwards";
      finding.advice = "choose another clock source (/sys/devices/system/clocksource)";
      return finding;
    }
    if (now > before) smallest = std::min(smallest, now - before);
    before = now;
  }
  finding.found = fmt::format("monotonic, reads {} ns apart", smallest.ns);
  constexpr double kYear2024 = 1704067200;
  if (smallest > from_milliseconds(1)) {
    finding.health = Health::kAdvice;
    finding.advice = "coarse: times in reports will be rough";
  } else if (host.clock.wall_seconds() < kYear2024) {
    finding.health = Health::kAdvice;
    finding.advice = "the date is wrong; start a time service (chrony, systemd-timesyncd)";
  }
  return finding;
}

// The text of one of the host's network settings, or nothing in a container that hides it.
std::string setting(const run::NodeHost& host, const std::string& path) {
  const auto text = host::read_text(host.disk, path);
  if (!text.ok()) return "";
  return (*text).substr(0, (*text).find('\n'));
}

// Checks the network settings, which only runs on several machines need.
Finding check_network(const run::NodeHost& host) {
  const std::string ipv4 = "/proc/sys/net/ipv4/";
  const std::string idle = setting(host, ipv4 + "tcp_slow_start_after_idle");
  const std::string congestion = setting(host, ipv4 + "tcp_available_congestion_control");
  Finding finding{.name = "network", .health = Health::kAdvice, .found = {}, .advice = {}};
  if (idle.empty() || congestion.empty()) {
    finding.found = "unknown";
    finding.advice = ipv4 + "* cannot be read; nothing to do if this is a restricted container";
    return finding;
  }
  const auto offers = [&](std::string_view name) {
    return fmt::format(" {} ", congestion).find(fmt::format(" {} ", name)) != std::string::npos;
  };
  finding.found = fmt::format("slow start after idle: {}; congestion control: {}", idle, congestion);
  if (idle != "0") {
    finding.advice = "as root, for runs on several machines: sysctl net.ipv4.tcp_slow_start_after_idle=0";
  } else if (!offers("bbr")) {
    finding.advice = "as root, for runs on several machines: modprobe tcp_bbr (bulk then fills no queues)";
  } else if (!offers("cubic")) {
    finding.advice = "as root, for runs on several machines: modprobe tcp_cubic (for control messages)";
  } else {
    finding.health = Health::kGood;
  }
  return finding;
}

Finding check_disk(const run::NodeHost& host) {
  Finding finding{.name = "disk", .health = Health::kGood, .found = {}, .advice = {}};
  const auto free = host.disk.free_bytes(".");
  if (!free.ok()) {
    finding.health = Health::kBad;
    finding.found = free.error().message();
    finding.advice = "go to a directory that can be read";
    return finding;
  }
  finding.found = fmt::format("{} free in the working directory", human_bytes(*free));
  if (*free < 2 * kGiB) {
    finding.health = *free < (std::uint64_t{64} << 20) ? Health::kBad : Health::kAdvice;
    finding.advice = "a run keeps data, two checkpoints and the model: give --out on a larger disk";
  }
  return finding;
}

constexpr const char* word(Health health) {
  switch (health) {
    case Health::kGood: return "good";
    case Health::kAdvice: return "advice";
    case Health::kBad: return "bad";
  }
  return "unknown";
}

}  // namespace

std::vector<Finding> examine(const run::NodeHost& host) {
  return {check_cpu(host),   check_cores(host), check_memory(host), check_huge_pages(host),
          check_clock(host), check_disk(host),  check_network(host)};
}

std::vector<Finding> examine_parts(host::Disk& disk, const EngineList& engines) {
  std::vector<Finding> findings;
  for (const EngineEntry& engine : engines.all()) {
    if (!engine.parts) continue;
    for (EnginePart& part : engine.parts(disk)) {
      const Health health = part.state == EnginePart::State::kThere     ? Health::kGood
                            : part.state == EnginePart::State::kMissing ? Health::kAdvice
                                                                        : Health::kBad;
      findings.push_back({.name = part.name,
                          .health = health,
                          .found = std::move(part.found),
                          .advice = std::move(part.advice)});
    }
  }
  return findings;
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<7} {:<11} {}\n", word(finding.health), finding.name, finding.found);
    if (!finding.advice.empty()) text += fmt::format("{:<19} -> {}\n", "", finding.advice);
  }
  return text;
}

std::string to_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = {{"ok", healthy(findings)}, {"checks", nlohmann::ordered_json::array()}};
  for (const Finding& finding : findings) {
    json["checks"].push_back({{"name", finding.name},
                              {"health", word(finding.health)},
                              {"found", finding.found},
                              {"advice", finding.advice}});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool healthy(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& f) { return f.health == Health::kBad; });
}

}  // namespace gossamer::commands
