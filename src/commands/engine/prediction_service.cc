// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/prediction_service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "json/read_json.h"

namespace gossamer::commands {
namespace {

using Json = nlohmann::ordered_json;

// How the answers of a request are put together.
enum class Form { kOne, kArray, kLines };

struct Parsed {
  Form form = Form::kOne;
  std::size_t top = 0;
  std::vector<Query> queries;
};

Error bad_body(std::string what, std::string got, std::string expected, std::string fix) {
  return {.kind = ErrorKind::kBadData,
          .where = "body",
          .what = std::move(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = std::move(fix)};
}

Result<std::size_t> parse_top(const host::HttpRequest& request, std::size_t otherwise) {
  std::size_t top = otherwise;
  if (!request.repeated.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = request.repeated,
                 .what = "the parameter is given twice",
                 .got = fmt::format("'{}'", request.repeated.substr(0, 40)),
                 .expected = "each parameter once",
                 .fix = "mend the query string"};
  }
  for (const auto& [name, value] : request.parameters) {
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, top);
    if (name == "top" && error == std::errc() && stop == end && top >= 1 && top <= kMostLabels) continue;
    return Error{.kind = ErrorKind::kUsage,
                 .where = name,
                 .what = name == "top" ? "cannot use the value" : "there is no such parameter",
                 .got = fmt::format("'{}'", value),
                 .expected = fmt::format("top=K with K in 1..{}", kMostLabels),
                 .fix = "mend the query string, or leave it out"};
  }
  return top;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The line that predict would get for this query.
Result<std::string> line_of(const Json& query, const std::string& place) {
  if (query.is_object()) return dump(query);
  if (query.is_string()) return query.get<std::string>();
  Error error =
      bad_body("cannot read the query", query.type_name(),
               R"(an object such as {"text": ...} or {"features": ...}, or a string)", "mend the query");
  error.where = place;
  return error;
}

Result<void> parse_json(const std::string& body, Parsed& parsed) {
  Json json;
  bool deep = false;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string twice;
  const auto check = [&](int depth, Json::parse_event_t event, const Json& value) {
    const bool begins =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    deep = deep || (begins && static_cast<std::size_t>(depth) >= kMostJsonLevels);  // `depth` are around it
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      twice = value.get<std::string>();
    }
    return !deep;
  };
  try {
    json = Json::parse(body, check);
  } catch (const Json::exception& error) {
    // The library's message ends with what it saw and wanted, behind its own name of the failure.
    const std::string_view message = error.what();
    const std::size_t name_end = message.find("] ");
    return bad_body("not well-formed JSON",
                    std::string(name_end == std::string_view::npos ? message : message.substr(name_end + 2)),
                    "a query, or an array of queries", "mend the body");
  }
  if (deep) {
    return bad_body("JSON within JSON within JSON", fmt::format("more than {} levels", kMostJsonLevels),
                    "a query, or an array of queries", "mend the body");
  }
  if (!twice.empty()) {
    return bad_body("a key stands twice in one object", fmt::format("'{}'", twice.substr(0, 40)),
                    "each key once", "mend the body");
  }
  parsed.form = json.is_array() ? Form::kArray : Form::kOne;
  if (parsed.form == Form::kOne) {
    auto line = line_of(json, "query");
    if (!line.ok()) return line.error();
    parsed.queries.push_back({.text = std::move(*line), .place = "query"});
    return {};
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = fmt::format("query {}", i + 1);
    auto line = line_of(json[i], place);
    if (!line.ok()) return line.error();
    parsed.queries.push_back({.text = std::move(*line), .place = place});
  }
  return {};
}

// Takes each line as a query, blank ones too.
void parse_lines(std::string_view body, Parsed& parsed) {
  parsed.form = Form::kLines;
  std::size_t number = 0;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    std::string_view line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    parsed.queries.push_back({.text = std::string(line), .place = fmt::format("line {}", number)});
  }
}

Result<void> parse_body(const host::HttpRequest& request, Parsed& parsed) {
  if (request.content_type == "application/json") {
    if (auto done = parse_json(request.body, parsed); !done.ok()) return done;
  } else {
    parse_lines(request.body, parsed);
  }
  const std::size_t queries = parsed.queries.size();
  if (queries > kQueriesPerRequest) {
    return bad_body("too many queries in one request", fmt::format("{}", queries),
                    fmt::format("at most {}", kQueriesPerRequest), "send several requests");
  }
  if (queries * parsed.top <= kLabelsPerRequest) return {};
  return bad_body(
      "too many labels in one reply", fmt::format("{} queries, {} labels each", queries, parsed.top),
      fmt::format("at most {} labels in all", kLabelsPerRequest), "send several requests, or lower top");
}

bool known_type(const std::string& type) {
  return type == "application/json" || type == "application/x-ndjson" || type == "text/plain";
}

host::HttpReply wrong_type(const std::string& type) {
  return host::http_error(415,
                          {.where = "Content-Type",
                           .what = "cannot read a body of this type",
                           .got = type.empty() ? "none" : type,
                           .expected = "application/json, application/x-ndjson or text/plain",
                           .fix = "name the type, for example: curl -H 'Content-Type: application/json'"});
}

// Letters of other encodings would be words that no model knows.
host::HttpReply wrong_charset(const std::string& charset) {
  return host::http_error(415, {.where = "Content-Type",
                                .what = "cannot read a body of this encoding",
                                .got = fmt::format("charset={}", charset.substr(0, 40)),
                                .expected = "UTF-8",
                                .fix = "convert the body to UTF-8, and say charset=utf-8 or nothing"});
}

host::HttpReply reply_of(Form form, const std::vector<std::string>& answers) {
  if (form == Form::kLines) {
    std::string body;
    for (const std::string& answer : answers) body += answer + "\n";
    return {.content_type = "application/x-ndjson", .body = std::move(body)};
  }
  if (form == Form::kOne) return {.body = answers.at(0) + "\n"};
  return {.body = fmt::format("[{}]\n", fmt::join(answers, ","))};
}

// A request on its way through the service: the queries that it asks, or the reply that it has already.
struct Job {
  Parsed parsed;
  std::vector<std::string> answers;  // by query
  std::optional<host::HttpReply> reply;

  void refuse(const Error& error) {
    if (!reply.has_value()) reply = host::http_error(error.kind == ErrorKind::kFailed ? 503 : 400, error);
  }
};

Job begin(const host::HttpRequest& request, std::size_t default_top) {
  Job job;
  if (!known_type(request.content_type)) {
    job.reply = wrong_type(request.content_type);
    return job;
  }
  if (!request.charset.empty() && request.charset != "utf-8" && request.charset != "utf8" &&
      request.charset != "us-ascii") {
    job.reply = wrong_charset(request.charset);
    return job;
  }
  const auto top = parse_top(request, default_top);
  if (!top.ok()) {
    job.refuse(top.error());
    return job;
  }
  job.parsed.top = *top;
  if (const auto read = parse_body(request, job.parsed); !read.ok()) job.refuse(read.error());
  job.answers.resize(job.parsed.queries.size());
  return job;
}

}  // namespace

std::vector<host::HttpReply> PredictionService::answer(std::span<const host::HttpRequest> requests) {
  std::vector<Job> jobs;
  // Queries by their number of labels, because a block has one number. A query is named by (job, query).
  std::map<std::size_t, std::vector<std::pair<std::size_t, std::size_t>>> blocks;
  for (std::size_t j = 0; j < requests.size(); ++j) {
    jobs.push_back(begin(requests[j], session_.top()));
    if (jobs[j].reply.has_value()) continue;
    for (std::size_t q = 0; q < jobs[j].answers.size(); ++q) blocks[jobs[j].parsed.top].emplace_back(j, q);
  }
  for (const auto& [top, places] : blocks) {
    std::vector<Query> queries;
    queries.reserve(places.size());
    for (const auto& [j, q] : places) queries.push_back(std::move(jobs[j].parsed.queries[q]));
    session_.answer_each(queries, top, [&](std::size_t i, const Result<std::string>& answer) {
      const auto& [j, q] = places[i];
      if (answer.ok()) {
        jobs[j].answers[q] = *answer;
      } else {
        jobs[j].refuse(answer.error());
      }
    });
  }
  std::vector<host::HttpReply> replies;
  for (Job& job : jobs) {
    replies.push_back(job.reply.has_value() ? std::move(*job.reply) : reply_of(job.parsed.form, job.answers));
  }
  return replies;
}

}  // namespace gossamer::commands
