// SPDX-License-Identifier: Apache-2.0
//
// LeadFile is what a lead keeps about its run in its directory, for people and for --resume:
//
//   engine = "sparse"     what the run does
//   first = 3             members that must have come before work begins
//   store = ""            as --store names it
//   standby = ""          other coordinators of the run, with commas between them
//   start = 20            the step that a training begins with
//   nodes = 3             members that the lead has started itself, on its machine
//   certificates = 86400  seconds that nodes' certificates hold, where the user has said it
//
// Any other line is a key of the engine. A run of an older version has these lines in a run.toml.
//
// Thread rule: plain values and functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::run {

struct LeadFile {
  std::string engine = {};                 // empty: there is no run yet
  std::vector<std::string> settings = {};  // the engine's keys: key=value
  std::uint64_t first = 1;
  std::string store = {};
  std::vector<std::string> standbys = {};
  std::optional<StepNumber> start = {};  // nothing: the file does not say
  // Members that end with the lead. 0: members join from anywhere, and outlive it.
  std::uint64_t nodes = 0;
  std::optional<std::uint64_t> certificate_seconds = {};  // nothing: as long as by default

  bool operator==(const LeadFile&) const = default;
};

// DIR/lead.toml of a lead's directory.
[[nodiscard]] std::string lead_file_path(const std::string& directory);
// Writes DIR/lead.toml, durable when it returns. `directory` exists.
[[nodiscard]] Result<void> keep_lead_file(host::Disk& disk, const std::string& directory,
                                          const LeadFile& file);
// Reads DIR/lead.toml, else DIR/run.toml. A directory without both gives an empty LeadFile, and so does the
// run.toml of a RunDirectory, which is none. kUsage for a file that is none.
[[nodiscard]] Result<LeadFile> read_lead_file(host::Disk& disk, const std::string& directory);

}  // namespace gossamer::run
