// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a plain text and as JSON lines with "text", packed or not. Both readers answer with documents
// of valid UTF-8, in pieces that are no larger than asked, or with bad data that has a place. The documents
// depend neither on the sizes of pieces and chunks, nor on the workers.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz_source.h"
#include "host/sim/compute.h"
#include "learn/text/words.h"
#include "learn/tokens/test_collected_documents.h"
#include "learn/tokens/text_documents.h"

namespace {

using namespace gossamer;

using Read = Result<tokens::TextReport> (*)(data::ByteSource&, const tokens::TextOptions&,
                                            tokens::DocumentSink&);

std::vector<std::string> read(std::span<const std::uint8_t> bytes, Read read_one,
                              const tokens::TextOptions& options) {
  const auto source = fuzz::open(bytes);
  if (source == nullptr) return {};
  tokens::CollectedDocuments sink;
  const auto report = read_one(*source, options, sink);
  CHECK(report.ok() || (report.error().kind == ErrorKind::kBadData && !report.error().where.empty()));
  for (const std::string& piece : sink.pieces) {
    CHECK(piece.size() <= options.piece_bytes && text::valid_utf8_prefix(piece) == piece.size());
  }
  // A failed read gets to a place that depends on the pieces. That it fails does not depend on them.
  if (!report.ok()) return {"failed"};
  CHECK(sink.whole() && report->documents == sink.documents.size());
  std::size_t size = 0;
  for (const std::string& document : sink.documents) size += document.size();
  CHECK(size == report->bytes);
  return sink.documents;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  host::SimCompute compute({.workers = 3});
  const tokens::TextOptions whole{
      .read = {.limits = {.line_bytes = 500, .chunk_bytes = 4096}, .skip_bad = 1000}};
  const tokens::TextOptions parts{
      .piece_bytes = 5,
      .read = {.limits = {.line_bytes = 500, .chunk_bytes = 7}, .skip_bad = 1000, .compute = &compute}};
  for (const Read one : {&tokens::read_plain_document, &tokens::read_document_lines}) {
    CHECK(read({data, size}, one, whole) == read({data, size}, one, parts));
  }
  return 0;
}
