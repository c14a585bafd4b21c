// SPDX-License-Identifier: Apache-2.0
#include "settings/needed_key.h"

#include <fmt/format.h>

#include "base/check.h"

namespace gossamer::settings {

Result<void> needed(const Values& values, std::string_view name) {
  const Key* const key = values.keys().find(name);
  CHECK(key != nullptr, name);
  if (!values.text(*key).empty()) return {};
  return Error{.kind = ErrorKind::kUsage,
               .what = fmt::format("{} is missing", name),
               .expected = fmt::format("{}=VALUE: {}", name, key->help),
               .fix = fmt::format("add {}=VALUE", name)};
}

}  // namespace gossamer::settings
