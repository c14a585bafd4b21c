// SPDX-License-Identifier: Apache-2.0
//
// LineTails reads the lines of all files of a directory with one suffix, as they are written. Files
// come, and grow. A file that cannot be read is treated as missing. Thread rule: one thread;
// writers may be other processes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "host/api/disk.h"

namespace gossamer::commands {

class LineTails {
 public:
  using Take = FunctionRef<void(const std::string& file, std::string_view line)>;

  LineTails(host::Disk& disk, std::string directory, std::string suffix)
      : disk_(disk), directory_(std::move(directory)), suffix_(std::move(suffix)) {}

  // Gives the whole lines that have come since the last call, file by file.
  void read(Take take);

 private:
  struct Tail {
    std::unique_ptr<host::SequentialFile> file;
    std::string rest = {};  // of a line that is not whole yet
  };

  void read(const std::string& name, Tail& tail, Take take);

  host::Disk& disk_;
  const std::string directory_;
  const std::string suffix_;
  std::map<std::string, Tail> tails_;  // by name
};

}  // namespace gossamer::commands
