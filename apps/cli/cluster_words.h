// SPDX-License-Identifier: Apache-2.0
//
// Words that the commands of a cluster share: addresses, sizes, durations, and the place where this machine
// keeps what it knows. Errors are kUsage and name the flag. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "base/result.h"
#include "host/api/endpoint.h"
#include "node/places.h"
#include "node/report_options.h"

namespace gossamer::cli {

// "HOST:PORT" of the flag or argument `word`.
[[nodiscard]] Result<host::Endpoint> parse_at(std::string_view text, std::string_view word);

// A name or address without a port, by which others reach this machine.
[[nodiscard]] Result<std::string> parse_host(const std::string& text, std::string_view flag);

// Bytes of "800M", "1.5GB", "2GiB", "1000000": K, M, G, T are powers of 1000, those with an "i" of 1024.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text, std::string_view flag);

// Seconds of "90s", "30m", "24h", "7d"; from 1 second to ten years.
[[nodiscard]] Result<std::int64_t> parse_seconds(std::string_view text, std::string_view flag);

// $XDG_STATE_HOME/gossamer, or ~/.local/state/gossamer. kUsage if neither variable is set.
[[nodiscard]] Result<std::string> state_directory();

// A directory STATE/`what`/NAME for files of this process, which nobody else has or gets. It is not made. The
// number of a process is not enough: containers may share STATE, and each counts its own.
[[nodiscard]] Result<std::string> own_directory(std::string_view what);

// Makes a path absolute, so that a run is found again from any working directory.
[[nodiscard]] std::string absolute_path(const std::string& path);

// "gossamer 0.1.0", for peers and status.
[[nodiscard]] std::string program_name();

// The flags of what a node reports, on standard error and to Prometheus.
struct ReportFlags {
  std::string level = "info";
  std::string format;  // empty: text on a terminal, logfmt elsewhere
  std::string metrics;
};
void add_report(Parser& parser, ReportFlags& flags);
// The flags as words, each with a blank before it. Values of their own alone.
[[nodiscard]] std::string report_words(const ReportFlags& flags);
[[nodiscard]] Result<node::ReportOptions> report_options(const Context& context, const ReportFlags& flags);

// The address of the run that is led from a directory, and of which `directory` becomes the coordinator's
// own. kUsage for a node's directory: it would look like a run without tokens.
[[nodiscard]] Result<node::RunAddress> run_address(Context& context, std::string& directory);

// The flags that say which node `target` (HOST:PORT or DIR) is, and how to ask there.
struct TargetFlags {
  std::string target;
  std::string token;
  std::string directory;
};
void add_target(Parser& parser, TargetFlags& flags);
void add_directory_and_token(Parser& parser, TargetFlags& flags);
// An error of one that it found says so where nothing answers there, and for a run's directory how its
// coordinator is started again. kFailed where nothing answers at a HOST:PORT of which nothing is known here.
[[nodiscard]] Result<node::Target> find_target(Context& context, const TargetFlags& flags);
[[nodiscard]] Error not_answered(Context& context, const TargetFlags& flags, const node::Target& target,
                                 Error error);

}  // namespace gossamer::cli
