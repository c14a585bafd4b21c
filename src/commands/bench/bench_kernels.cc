// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_kernels.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

#include "commands/bench/bench_options.h"
#include "commands/bench/kernel_speeds.h"

namespace gossamer::commands {
namespace {

constexpr std::array<std::string_view, 4> kBounds = {"memory", "f32", "bf16", "bytes"};

}  // namespace

const settings::KeyTable<BenchKernels>& bench_kernels_keys() {
  using settings::key;
  using B = BenchKernels;
  static const settings::KeyTable<B> table(
      {.listed_by = "gossamer bench kernels --help", .one = "an option"},
      {key<&B::hidden>("hidden", {.min = 32, .max = 4096, .multiple_of = 32}, "width of a row"),
       key<&B::batch>("batch", {.min = 32, .max = 4096, .multiple_of = 32}, "samples of a panel product"),
       key<&B::megabytes>("megabytes", {.min = 1, .max = 4096}, "of each array that is streamed through"),
       key<&B::milliseconds>("milliseconds", {.min = 1, .max = 10'000}, "least time of a measurement")});
  return table;
}

Result<BenchKernelsResult> bench_kernels(const run::NodeHost& host, const BenchKernels& options) {
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
  json["options"] = bench_options_json(bench_kernels_keys().values(options));
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

}  // namespace gossamer::commands
