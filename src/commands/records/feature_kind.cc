// SPDX-License-Identifier: Apache-2.0
#include "commands/records/feature_kind.h"

#include <fmt/format.h>

namespace gossamer::commands {
namespace {

const char* form(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kText: return R"(a text, or {"text": "..."})";
    case FeatureKind::kNames: return R"({"features": {"NAME": VALUE, ...}})";
    case FeatureKind::kSessions: return "item names between blanks, the newest last";
    case FeatureKind::kWords: return "words between blanks";
    case FeatureKind::kNumbers: return "INDEX:VALUE pairs such as '3:0.5 17:1.2'";
  }
  return "";
}

}  // namespace

const char* name(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kText: return "text";
    case FeatureKind::kNames: return "named features";
    case FeatureKind::kSessions: return "sessions";
    case FeatureKind::kWords: return "words of a plain text";
    case FeatureKind::kNumbers: return "numbered features";
  }
  return "";
}

FeatureKind feature_kind(const sparse_engine::Model& model) {
  if (model.featurizer.has_value()) return FeatureKind::kText;
  if (model.line.has_value()) {
    return model.task == "word2vec" ? FeatureKind::kWords : FeatureKind::kSessions;
  }
  return model.feature_names.size() > 0 ? FeatureKind::kNames : FeatureKind::kNumbers;
}

FeatureKind feature_kind(const data::Dataset& imported) {
  return imported.has_feature_names() ? FeatureKind::kNames : FeatureKind::kNumbers;
}

Error wrong_kind(const KindMismatch& mismatch) {
  return {.kind = ErrorKind::kUsage,
          .where = mismatch.where,
          .what = fmt::format("the model was trained on {}", name(mismatch.expected)),
          .got = name(mismatch.got),
          .expected = form(mismatch.expected),
          .fix = "give it the form that the model was trained on"};
}

}  // namespace gossamer::commands
