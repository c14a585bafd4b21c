// SPDX-License-Identifier: Apache-2.0
#include "commands/records/session_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "commands/records/line_copy.h"
#include "learn/data/name_table.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/session_reader.h"

namespace gossamer::commands {
namespace {

std::string to_line(const data::Session& session) {
  std::string line = fmt::format("{}", fmt::join(session.items, " "));
  if (!session.target.empty()) line.append("\t").append(session.target);
  return line;
}

std::string beginning(const data::Session& session) {
  constexpr std::size_t kShown = 12;
  const auto shown = session.items.first(std::min(kShown, session.items.size()));
  std::string text =
      fmt::format("{}{}", fmt::join(shown, " "), shown.size() < session.items.size() ? " ..." : "");
  if (!session.target.empty()) text += fmt::format(" -> {}", session.target);
  return text;
}

}  // namespace

Result<data::ReadReport> copy_sessions(const run::NodeHost& host, const DataImportRequest& request,
                                       const std::string& path) {
  data::NameTable items;
  auto report =
      copy_lines(host, {.request = request, .path = path, .unit = "sessions"},
                 [&items](data::ByteSource& source, const data::ReadOptions& options, run::LineFile& file) {
                   return data::read_sessions(source, options, [&](const data::Session& session) {
                     for (const std::string_view item : session.items) items.id(item);
                     if (!session.target.empty()) items.id(session.target);
                     return file.line(to_line(session));
                   });
                 });
  if (!report.ok()) return report;
  report->features = items.size();
  report->labels = items.size();
  return report;
}

Result<DataLook> look_at_sessions(const run::NodeHost& host, const std::string& path) {
  auto source = data::open_bytes(host.disk, path);
  if (!source.ok()) return source.error();
  DataLook look;
  data::NameTable items;
  LabelUse counts;
  const auto read = data::read_sessions(**source, {.compute = &host.compute},
                                        [&](const data::Session& session) -> Result<void> {
                                          const bool target_only = !session.target.empty();
                                          for (std::size_t at = 0; at < session.items.size(); ++at) {
                                            const std::uint32_t item = items.id(session.items[at]);
                                            if (at == 0 || target_only) continue;
                                            count_labels({&item, 1}, counts, look);
                                            look.feature_entries += at;
                                          }
                                          if (target_only) {
                                            const std::uint32_t item = items.id(session.target);
                                            count_labels({&item, 1}, counts, look);
                                            look.feature_entries += session.items.size();
                                          }
                                          if (look.examples.size() < 3)
                                            look.examples.push_back(beginning(session));
                                          return {};
                                        });
  if (!read.ok()) return read.error();
  look.features = items.size();
  look.labels = items.size();
  rank_labels(counts, [&items](std::uint32_t label) { return std::string(items.name(label)); }, look);
  return look;
}

}  // namespace gossamer::commands
