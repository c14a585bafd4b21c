// SPDX-License-Identifier: Apache-2.0
#include "run/lead_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include "host/api/files.h"
#include "run/run_directory.h"
#include "settings/toml.h"

namespace gossamer::run {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
// Ten years, as for the flag. The end of a certificate is the sum of this and now.
constexpr std::int64_t kMostCertificateSeconds = std::int64_t{3650} * 24 * 3600;

// A text in quotes. A text of JSON is a text of TOML too.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_number(std::string_view text) {
  constexpr std::size_t kMostDigits = 18;  // numbers of TOML have 63 bits
  return !text.empty() && text.size() <= kMostDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }) &&
         (text.size() == 1 || text.front() != '0');
}

std::string line_of(const std::string& setting) {
  const std::size_t equals = std::min(setting.find('='), setting.size());
  const std::string value = setting.substr(std::min(equals + 1, setting.size()));
  return fmt::format("{} = {}\n", setting.substr(0, equals), is_number(value) ? value : quoted(value));
}

std::string text_of(const LeadFile& file) {
  std::string text = fmt::format("engine = {}\n", quoted(file.engine));
  for (const std::string& setting : file.settings) text += line_of(setting);
  text += fmt::format("first = {}\nstore = {}\nstandby = {}\n", file.first, quoted(file.store),
                      quoted(fmt::format("{}", fmt::join(file.standbys, ","))));
  if (file.start) text += fmt::format("start = {}\n", file.start->value);
  if (file.nodes > 0) text += fmt::format("nodes = {}\n", file.nodes);
  if (file.certificate_seconds) text += fmt::format("certificates = {}\n", *file.certificate_seconds);
  return text;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, ',');) parts.push_back(part);
  return parts;
}

Error unreadable(std::string where, std::string got) {
  return {.kind = ErrorKind::kUsage,
          .where = std::move(where),
          .what = "cannot read the run's keys",
          .got = std::move(got),
          .expected = "key = value, with a text or a whole number",
          .fix = "restore the file, or start a new run in another directory"};
}

Result<void> take(LeadFile& file, const settings::TomlEntry& entry) {
  const auto* const word = entry.value.as<std::string>();
  const auto* const number = entry.value.as<std::int64_t>();
  if (word == nullptr && number == nullptr)
    return unreadable(entry.value.where, "another kind of value for " + entry.name);
  const std::string& name = entry.name;
  if (name == "first" || name == "start" || name == "nodes" || name == "certificates") {
    if (number == nullptr || *number < 0)
      return unreadable(entry.value.where, "no whole number for " + entry.name);
    if (name == "certificates" && (*number == 0 || *number > kMostCertificateSeconds))
      return unreadable(entry.value.where, "certificates that hold for no time, or for more than ten years");
    const auto count = static_cast<std::uint64_t>(*number);
    if (name == "first") file.first = count;
    if (name == "start") file.start = StepNumber(count);
    if (name == "nodes") file.nodes = count;
    if (name == "certificates") file.certificate_seconds = count;
    return {};
  }
  std::string text = word != nullptr ? *word : std::to_string(*number);
  if (name == "engine") {
    file.engine = std::move(text);
  } else if (name == "store") {
    file.store = std::move(text);
  } else if (name == "standby") {
    file.standbys = split_list(text);
  } else {
    file.settings.push_back(name + "=" + text);
  }
  return {};
}

}  // namespace

std::string lead_file_path(const std::string& directory) { return directory + "/lead.toml"; }

Result<void> keep_lead_file(host::Disk& disk, const std::string& directory, const LeadFile& file) {
  return host::replace_file(disk, lead_file_path(directory), text_of(file));
}

Result<LeadFile> read_lead_file(host::Disk& disk, const std::string& directory) {
  LeadFile file;
  for (const std::string& path : {lead_file_path(directory), directory + "/run.toml"}) {
    const auto there = disk.exists(path);
    if (!there.ok()) return there.error();
    if (!*there) continue;
    const auto text = host::read_text(disk, path, kMostBytes);
    if (!text.ok()) return text.error();
    if (path != lead_file_path(directory) && is_training_config(*text)) break;
    const auto table = settings::parse_toml(*text, path);
    if (!table.ok()) return unreadable(table.error().where, table.error().got);
    for (const settings::TomlEntry& entry : *table) {
      if (auto taken = take(file, entry); !taken.ok()) return taken.error();
    }
    return file;
  }
  return file;
}

}  // namespace gossamer::run
