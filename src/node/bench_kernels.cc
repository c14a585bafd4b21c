// SPDX-License-Identifier: Apache-2.0
#include "node/bench_kernels.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>

#include "engines/sparse/nearest_name.h"
#include "node/kernel_speeds.h"

namespace gossamer::node {
namespace {

struct Option {
  std::string_view name;
  std::string_view help;
  std::uint64_t BenchKernels::* value;
  std::uint64_t min;
  std::uint64_t max;
  std::uint64_t multiple_of;
};
constexpr std::array kOptions = {
    Option{"hidden", "width of a row", &BenchKernels::hidden, 32, 4096, 32},
    Option{"batch", "samples of a panel product", &BenchKernels::batch, 32, 4096, 32},
    Option{"megabytes", "of each array that is streamed through", &BenchKernels::megabytes, 1, 4096, 1},
    Option{"milliseconds", "least time of a measurement", &BenchKernels::milliseconds, 1, 10'000, 1},
};

constexpr std::array<std::string_view, 4> kBounds = {"memory", "f32", "bf16", "bytes"};

Error usage(std::string_view what, std::string_view got, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = std::string(what),
          .got = fmt::format("'{}'", got),
          .expected = std::move(expected),
          .fix = "'gossamer bench kernels --help' lists all options"};
}

}  // namespace

Result<void> set_bench_option(BenchKernels& options, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  const auto* const option = std::ranges::find(kOptions, name, &Option::name);
  if (option == kOptions.end()) {
    std::vector<std::string_view> names;
    for (const Option& known : kOptions) names.push_back(known.name);
    return usage(fmt::format("there is no option '{}'", name), text,
                 fmt::format("an option such as '{}'", engine::nearest_name(name, names)));
  }
  std::uint64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || number < option->min || number > option->max ||
      number % option->multiple_of != 0) {
    return usage(
        fmt::format("cannot set {}", name), value,
        fmt::format("an integer {}..{}, a multiple of {}", option->min, option->max, option->multiple_of));
  }
  options.*(option->value) = number;
  return {};
}

std::string bench_kernels_help() {
  const BenchKernels defaults;
  std::string text;
  for (const Option& option : kOptions) {
    text += fmt::format("  {:<26} {}, {}..{}\n", fmt::format("{}={}", option.name, defaults.*(option.value)),
                        option.help, option.min, option.max);
  }
  return text;
}

Result<BenchKernelsResult> bench_kernels(const NodeHost& host, const BenchKernels& options) {
  // Four arrays of floats, and bf16 and bytes as much as one.
  const std::uint64_t needed = 5 * (options.megabytes << 20) + (std::uint64_t{64} << 20);
  if (needed > host.compute.memory_limit_bytes()) {
    return Error{.kind = ErrorKind::kFailed,
                 .where = {},
                 .what = "the arrays do not fit into memory",
                 .got = fmt::format("{} MB needed", needed >> 20),
                 .expected = fmt::format("at most {} MB", host.compute.memory_limit_bytes() >> 20),
                 .fix = "lower megabytes"};
  }
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
  for (const Option& option : kOptions) json["options"][std::string(option.name)] = options.*(option.value);
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
