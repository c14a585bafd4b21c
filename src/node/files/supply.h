// SPDX-License-Identifier: Apache-2.0
//
// Supply: the files that members need for a run before its engine can begin, and what the coordinator takes
// from members while the run lasts. A coordinator hands the Supply to members before the bytes of the engine
// (node/run_configuration.h, docs/protocols/delivery.md). Paths are from the root.
//
// Thread rule: plain values and functions. Cost of add_file(): a SHA-256 of the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "host/api/disk.h"
#include "node/files/stored_file.h"

namespace gossamer::node {

struct Supply {
  struct File {
    std::string name;   // is_plain_name()
    Sha256 manifest{};  // its id
    std::uint64_t bytes = 0;
    std::string path = {};  // empty: it lies in `directory` under its name

    bool operator==(const File&) const = default;
  };
  std::vector<File> files = {};  // no two of one name
  std::string directory;         // of the files that have no path, and of all manifests
  std::string deliver;           // directory for what members deliver
  std::uint64_t most_bytes = 0;  // of a file in `deliver`

  bool operator==(const Supply&) const = default;

  // Null without a file of that name.
  [[nodiscard]] const File* find(std::string_view name) const;
  [[nodiscard]] StoredPlace place_of(const File& file) const;
};

// A Supply as one member has it: with places on the member's machine.
struct Supplied {
  Supply supply;
  // The member does not have the coordinator's directories. What appears in supply.deliver is brought to the
  // coordinator, and then removed there.
  bool elsewhere = false;
  // Whether this member leaves by itself, and no coordinator is there to take what it saves. Then it is saved
  // once it is in supply.deliver: the member brings it when it comes again. The loop thread.
  std::function<bool()> nobody_takes = [] { return false; };
  // Hands a report to the coordinator (docs/protocols/reports.md). Any thread.
  std::function<void(std::string report)> tell = [](const std::string&) {};
};

// Describes a file of the coordinator's, keeps the manifest in supply.directory, which is there, and adds the
// file to the Supply. `path` may be empty (Supply::File).
[[nodiscard]] Result<void> add_file(host::Disk& disk, Supply& supply, const std::string& name,
                                    const std::string& path = {});

[[nodiscard]] std::string supply_bytes(const Supply& supply);
// kBadData where bytes are no Supply, or where a name would lead out of a directory.
[[nodiscard]] Result<Supply> read_supply(std::string_view bytes);

}  // namespace gossamer::node
