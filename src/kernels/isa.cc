// SPDX-License-Identifier: Apache-2.0
#include "kernels/isa.h"

#include <fmt/format.h>

#include <string>

namespace gossamer::kernels {

bool supported(Isa isa) {
  // The compiler's runtime asks the CPU and the operating system (saved register state) once.
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0 &&
                    __builtin_cpu_supports("f16c") != 0;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") != 0 &&
                      __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  switch (isa) {
    case Isa::kScalar: return true;
    case Isa::kSse4: return __builtin_cpu_supports("ssse3") != 0 && __builtin_cpu_supports("sse4.1") != 0;
    case Isa::kAvx2: return avx2;
    case Isa::kAvx512: return avx512;
    case Isa::kAvx512Bf16: return avx512 && __builtin_cpu_supports("avx512bf16") != 0;
  }
  return false;
}

Isa best_isa() {
  Isa best = Isa::kScalar;
  for (const Isa isa : kAllIsas) {
    if (supported(isa)) best = isa;
  }
  return best;
}

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return "scalar";
    case Isa::kSse4: return "sse4";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Bf16: return "avx512-bf16";
  }
  return "unknown";
}

Result<Isa> parse_isa(std::string_view text) {
  if (text == "auto") return best_isa();
  std::string runnable = "auto";
  for (const Isa isa : kAllIsas) {
    if (supported(isa)) runnable += fmt::format(", {}", name(isa));
  }
  for (const Isa isa : kAllIsas) {
    if (text != name(isa)) continue;
    if (supported(isa)) return isa;
    return Error{.kind = ErrorKind::kUsage,
                 .what = "this CPU lacks the instruction set",
                 .got = std::string(text),
                 .expected = runnable,
                 .fix = "use auto, or run on another machine"};
  }
  return Error{.kind = ErrorKind::kUsage,
               .what = "unknown instruction set",
               .got = fmt::format("'{}'", text),
               .expected = runnable,
               .fix = "use auto"};
}

std::string_view name(Element element) { return element == Element::kF32 ? "f32" : "bf16"; }

Element preferred_element(Isa isa) { return isa == Isa::kAvx512Bf16 ? Element::kBf16 : Element::kF32; }

}  // namespace gossamer::kernels
