// SPDX-License-Identifier: Apache-2.0
//
// A sink that keeps the documents and pieces it gets, and checks the promises of DocumentSink. Only tests
// include it. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "learn/tokens/text_documents.h"

namespace gossamer::tokens {

class CollectedDocuments final : public DocumentSink {
 public:
  std::vector<std::string> documents;
  std::vector<std::string> pieces;  // of all documents

  Result<void> begin() override {
    CHECK(!open_);
    open_ = true;
    documents.emplace_back();
    return {};
  }
  Result<void> piece(std::string_view text) override {
    CHECK(open_ && !text.empty());
    documents.back() += text;
    pieces.emplace_back(text);
    return {};
  }
  Result<void> end() override {
    CHECK(open_ && !documents.back().empty());
    open_ = false;
    return {};
  }
  // Whether every document that was begun has ended.
  [[nodiscard]] bool whole() const { return !open_; }

 private:
  bool open_ = false;
};

}  // namespace gossamer::tokens
