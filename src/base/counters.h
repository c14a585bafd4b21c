// SPDX-License-Identifier: Apache-2.0
//
// Counters and events. Each module keeps one plain struct of integers, which its owner increments in place.
// The struct describes every field once, and the exporters (JSON, Prometheus) walk the description:
//
//   struct ReaderCounters {
//     std::uint64_t records = 0;
//     std::uint64_t skipped = 0;
//     template <class Visitor> void describe(Visitor&& v) const {
//       v("gossamer_reader_records_total", "records", "Records read.", records);
//       v("gossamer_reader_skipped_total", "records", "Bad records skipped.", skipped);
//     }
//   };
//
// An event is a name and fields: sink("checkpoint_written", {{"step", 120U}}).
// Thread rule: the owner of a module owns its counters; export happens on that thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/function_ref.h"

namespace gossamer {

struct CounterSample {
  std::string_view name;  // Prometheus style, with unit and _total
  std::string_view unit;
  std::string_view help;
  std::uint64_t value;
};

// All counters of one module, in declaration order.
template <class Counters>
[[nodiscard]] std::vector<CounterSample> read(const Counters& counters) {
  std::vector<CounterSample> samples;
  counters.describe([&samples](std::string_view name, std::string_view unit, std::string_view help,
                               std::uint64_t value) { samples.push_back({name, unit, help, value}); });
  return samples;
}

// What happened, for events.jsonl; the sink renders it.
struct EventField {
  std::string_view key;
  std::variant<std::uint64_t, double, std::string> value;
};
using EventFields = std::initializer_list<EventField>;
using EventSink = FunctionRef<void(std::string_view event, EventFields fields)>;

}  // namespace gossamer
