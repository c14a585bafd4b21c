// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_session.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

#include "commands/lm/lm_memory.h"
#include "commands/lm/lm_query.h"
#include "commands/lm/loaded_lm.h"
#include "engines/pipeline/predict/text_generator.h"

namespace gossamer::commands {
namespace {

using LineJson = nlohmann::ordered_json;

std::string line_of(const LineJson& json) {
  return json.dump(-1, ' ', false, LineJson::error_handler_t::replace);
}

class LmSession final : public QuerySession {
 public:
  LmSession(LoadedLm loaded, const TextWanted& wanted) : loaded_(std::move(loaded)), wanted_(wanted) {}

  Result<void> answer(std::span<const Query> queries,
                      FunctionRef<void(std::string_view json)> sink) override {
    for (const Query& query : queries) {
      const auto line = go_on(query);
      if (!line.ok()) return line.error();
      sink(*line);
    }
    return {};
  }

  void answer_each(std::span<const Query> queries, std::size_t /*top*/,
                   FunctionRef<void(std::size_t query, const Result<std::string>& answer)> sink) override {
    for (std::size_t i = 0; i < queries.size(); ++i) sink(i, go_on(queries[i]));
  }

  [[nodiscard]] IgnoredKeys ignored_keys() const override { return ignored_; }
  [[nodiscard]] std::size_t top() const override { return 1; }

  [[nodiscard]] std::string describe(const std::string& directory) const override {
    const pipeline::LmShape& shape = loaded_.about.shape;
    return line_of({{"model", directory},
                    {"task", "lm"},
                    {"queries", "text"},
                    {"tokenizer", loaded_.about.tokenizer.name},
                    {"vocabulary", shape.vocabulary},
                    {"context", shape.context},
                    {"parameters", lm_parameter_count(shape)}});
  }

 private:
  Result<std::string> go_on(const Query& query) {
    const auto read = read_lm_query(query, wanted_);
    if (!read.ok()) return read.error();
    if (!read->ignored.empty() && ++ignored_.queries == 1) ignored_.first = read->ignored.front();
    const tokens::Tokenizer& tokenizer = *loaded_.tokenizer;
    std::vector<tokens::TokenId> prompt;
    tokenizer.encode(read->prompt, prompt);
    pipeline::GeneratorOptions options{.end_of_text = tokenizer.end_of_text()};
    const TextWanted& wanted = read->wanted;
    options.tokens = wanted.tokens.value_or(options.tokens);
    options.temperature = wanted.temperature.value_or(options.temperature);
    options.top_k = wanted.top_k.value_or(options.top_k);
    options.seed = wanted.seed.value_or(options.seed);
    auto generator = pipeline::TextGenerator::begin(*loaded_.model, prompt, options);
    if (!generator.ok()) return generator.error();
    std::vector<tokens::TokenId> added;
    for (;;) {
      const auto token = generator->next();
      if (!token.ok()) return token.error();
      if (!*token) break;
      added.push_back(**token);
    }
    LineJson json = {{"text", read->prompt + tokenizer.decode(added)}, {"tokens", added.size()}};
    if (!read->ignored.empty()) json["ignored_keys"] = read->ignored;
    return line_of(json);
  }

  const LoadedLm loaded_;
  const TextWanted wanted_;
  IgnoredKeys ignored_;
};

}  // namespace

Result<std::unique_ptr<QuerySession>> open_lm_session(const run::NodeHost& host, const LmModules& modules,
                                                      const OpenModel& wanted) {
  auto loaded = load_lm(host, modules, wanted.directory);
  if (!loaded.ok()) return loaded.error();
  return std::unique_ptr<QuerySession>(std::make_unique<LmSession>(*std::move(loaded), wanted.text));
}

}  // namespace gossamer::commands
