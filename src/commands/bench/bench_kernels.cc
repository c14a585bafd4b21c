// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_kernels.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

#include "commands/bench/kernel_speeds.h"
#include "settings/bench_options.h"

namespace gossamer::node {
namespace {

BenchOptions table(BenchKernels& o) {
  return {.command = "bench kernels",
          .options = {{"hidden", "width of a row", &o.hidden, 32, 4096, 32},
                      {"batch", "samples of a panel product", &o.batch, 32, 4096, 32},
                      {"megabytes", "of each array that is streamed through", &o.megabytes, 1, 4096},
                      {"milliseconds", "least time of a measurement", &o.milliseconds, 1, 10'000}}};
}

constexpr std::array<std::string_view, 4> kBounds = {"memory", "f32", "bf16", "bytes"};

}  // namespace

Result<void> set_bench_option(BenchKernels& options, std::string_view text) {
  return set_bench_option(table(options), text);
}

std::string bench_options_help(BenchKernels options) { return bench_options_help(table(options)); }

Result<BenchKernelsResult> bench_kernels(const NodeHost& host, const BenchKernels& options) {
  // Four arrays of floats, and bf16 and bytes as much as one.
  const std::uint64_t needed = 5 * (options.megabytes << 20) + (std::uint64_t{64} << 20);
  if (auto done = check_bench_memory(host, needed, "lower megabytes"); !done.ok()) return done.error();
  host.say("measuring every kernel on every instruction set of this CPU, one core");
  return measure_kernels(host.clock, options);
}

std::string to_json(const BenchKernelsResult& result, const BenchKernels& options) {
  nlohmann::ordered_json json;
  json["peaks"]["memory_gb_per_s"] = result.memory;
  for (const IsaPeak& peak : result.peaks) {
    json["peaks"][std::string(kernels::name(peak.isa))] = {
        {"f32_gflops", peak.f32}, {"bf16_gflops", peak.bf16}, {"bytes_gops", peak.bytes}};
  }
  json["kernels"] = nlohmann::ordered_json::array();
  for (const KernelSpeed& speed : result.speeds) {
    json["kernels"].push_back({{"kernel", speed.kernel},
                               {"isa", kernels::name(speed.isa)},
                               {"bound", kBounds[static_cast<std::size_t>(speed.bound)]},
                               {speed.bound == Bound::kMemory ? "gb_per_s" : "gflops", speed.rate},
                               {"share_of_peak", speed.share}});
  }
  BenchKernels measured = options;
  json["options"] = bench_options_json(table(measured));
  return json.dump();
}

std::string to_text(const BenchKernelsResult& result) {
  std::string text = fmt::format("memory: {:.1f} GB/s (triad, one core)\n\n{:<27}", result.memory, "");
  for (const IsaPeak& peak : result.peaks) text += fmt::format(" {:>14}", kernels::name(peak.isa));
  const auto line = [&](std::string_view name, double IsaPeak::* member) {
    text += fmt::format("\n{:<27}", name);
    for (const IsaPeak& peak : result.peaks) text += fmt::format(" {:>14.1f}", peak.*member);
  };
  line("peak f32, GFLOP/s", &IsaPeak::f32);
  line("peak bf16, GFLOP/s", &IsaPeak::bf16);
  line("peak bytes, GOP/s", &IsaPeak::bytes);
  const std::size_t kernels = result.peaks.empty() ? 0 : result.speeds.size() / result.peaks.size();
  for (std::size_t i = 0; i < kernels; ++i) {
    const KernelSpeed& first = result.speeds[i];
    text += fmt::format("\n{:<27}",
                        fmt::format("{}, {}", first.kernel, first.bound == Bound::kMemory ? "GB/s" : "G/s"));
    for (std::size_t isa = 0; isa < result.peaks.size(); ++isa) {
      const KernelSpeed& speed = result.speeds[isa * kernels + i];
      text += fmt::format(" {:>8.1f} {:>4.0f}%", speed.rate, 100 * speed.share);
    }
  }
  return text + "\n\nPercent: share of the memory's speed (GB/s) or of the instruction set's peak (G/s).\n";
}

}  // namespace gossamer::node
