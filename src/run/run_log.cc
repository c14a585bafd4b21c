// SPDX-License-Identifier: Apache-2.0
#include "run/run_log.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <span>
#include <utility>

#include "host/api/files.h"
#include "json/read_json.h"

namespace gossamer::run {
namespace {

using Json = nlohmann::ordered_json;

// The point of a metrics line, or nothing for a line that a crash tore.
std::optional<CurvePoint> parse_line(std::string_view line) {
  const Json json = read_json<Json>(line);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned()) return std::nullopt;
  const auto number = [&json](const char* key) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : 0.0;
  };
  return CurvePoint{
      .step = json["step"].get<std::uint64_t>(), .loss = number("loss"), .learning_rate = number("lr")};
}

// Whether a crash tore the last line of a file.
bool ends_torn(host::Disk& disk, const std::string& path) {
  const auto there = disk.exists(path);
  if (!there.ok() || !*there) return false;
  const auto mapped = disk.map(path);
  if (!mapped.ok()) return false;
  const std::span<const std::byte> bytes = (*mapped)->bytes();
  return !bytes.empty() && bytes.back() != std::byte{'\n'};
}

}  // namespace

RunLog::RunLog(host::Disk& disk, const host::Clock& clock, Files files)
    : disk_(disk), clock_(clock), files_(std::move(files)) {}

Result<void> RunLog::continue_at(std::uint64_t step) {
  curve_.clear();
  metrics_ = {};
  auto there = disk_.exists(files_.metrics);
  if (!there.ok()) return there.error();
  if (!*there) return {};
  auto text = host::read_text(disk_, files_.metrics);
  if (!text.ok()) return text.error();
  std::string kept;
  std::string_view rest = *text;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const std::optional<CurvePoint> point = parse_line(line);
    if (!point.has_value() || point->step > step) continue;
    curve_.push_back(*point);
    kept.append(line).push_back('\n');
  }
  if (kept.size() == (*text).size()) return {};
  return host::replace_file(disk_, files_.metrics, kept);
}

void RunLog::metric(const MetricLine& line) {
  Json json = {{"step", line.step}, {"epoch", line.epoch}, {"loss", line.loss}, {"lr", line.learning_rate}};
  if (line.samples_per_second) json["samples_per_second"] = *line.samples_per_second;
  if (line.active_rows) json["active_rows"] = *line.active_rows;
  append(metrics_, files_.metrics, json.dump() + "\n");
  curve_.push_back({.step = line.step, .loss = line.loss, .learning_rate = line.learning_rate});
}

void RunLog::event(std::string_view name, EventFields fields) {
  Json json = {{"time", clock_.wall_seconds()}, {"event", name}};
  for (const EventField& field : fields) {
    std::visit([&](const auto& value) { json[std::string(field.key)] = value; }, field.value);
  }
  // Paths and messages may hold bytes that are not UTF-8. A replacement
  // character is better than a lost event.
  append(events_, files_.events, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void RunLog::append(Lines& lines, const std::string& path, const std::string& line) {
  const auto lost = [this](const Error& error) {
    if (!first_error_) first_error_ = error;
  };
  if (lines.file == nullptr) {
    auto opened = disk_.open_writable(path, host::WriteMode::kAppend);
    if (!opened.ok()) return lost(opened.error());
    lines.file = std::move(*opened);
    lines.torn = ends_torn(disk_, path);
  }
  const std::string text = lines.torn ? "\n" + line : line;
  const auto done = lines.file->append(std::as_bytes(std::span(text)));
  lines.torn = !done.ok();
  if (!done.ok()) lost(done.error());
}

}  // namespace gossamer::run
