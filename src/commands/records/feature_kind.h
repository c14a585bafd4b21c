// SPDX-License-Identifier: Apache-2.0
//
// FeatureKind says in which form features are written: as text, by name, by number, or as lines of items or
// words. A model takes its test records and queries in the form of its training records. The other forms
// would mean something else or nothing.
//
// Thread rule: pure functions.
#pragma once

#include <string>

#include "base/result.h"
#include "engines/sparse/model/model.h"
#include "learn/data/dataset.h"

namespace gossamer::commands {

enum class FeatureKind {
  kText,      // {"text": "..."}, or the text alone
  kNames,     // {"features": {"NAME": VALUE, ...}}
  kSessions,  // ITEM ITEM ...
  kWords,     // WORD WORD ...
  kNumbers,   // INDEX:VALUE, or {"features": [[INDEX, VALUE], ...]}
};

// "text", "named features", "sessions", "words of a plain text", "numbered features".
[[nodiscard]] const char* name(FeatureKind kind);

[[nodiscard]] FeatureKind feature_kind(const sparse_engine::Model& model);
// The kind of imported records, which are never text.
[[nodiscard]] FeatureKind feature_kind(const data::Dataset& imported);

struct KindMismatch {
  std::string where;  // the file, or the place of the query
  FeatureKind got;
  FeatureKind expected;
};
// A kUsage error that shows the form that was found and the form that is wanted.
[[nodiscard]] Error wrong_kind(const KindMismatch& mismatch);

}  // namespace gossamer::commands
