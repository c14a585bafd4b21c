// SPDX-License-Identifier: Apache-2.0
#include "host/posix/etcd_access.h"

namespace gossamer::host {

Result<void> read_login(std::string_view text, EtcdAccess& access) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || text.find('\n') != std::string_view::npos) {
    return Error{.kind = ErrorKind::kUsage,
                 .what = "cannot read the login of etcd",
                 .expected = "one line, NAME:PASSWORD",
                 .fix = "write a user of etcd and its password into the file"};
  }
  access.name = text.substr(0, colon);
  access.password = text.substr(colon + 1);
  return {};
}

}  // namespace gossamer::host
