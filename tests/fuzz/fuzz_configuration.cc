// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the configuration of a run: its reader does not crash. A configuration with a Supply has only
// names that are plain and differ, and is read alike when it is written again.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "node/run_configuration.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gossamer;
  using namespace gossamer::node;
  const auto read = read_run_configuration({reinterpret_cast<const char*>(data), size});
  if (!read.ok() || !read->supply) return 0;
  const auto again = read_run_configuration(run_configuration_bytes(*read));
  CHECK(again.ok());
  CHECK(*again == *read);
  for (const Supply::File& file : read->supply->files) {
    CHECK(is_plain_name(file.name));
    CHECK(read->supply->find(file.name) == &file);
  }
  return 0;
}
