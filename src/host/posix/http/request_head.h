// SPDX-License-Identifier: Apache-2.0
//
// HeadReader: the strict check in front of the HTTP library. It takes the bytes of a request up to the empty
// line. It refuses what two readers could understand differently, because a proxy may be the other reader.
// Then one client's bytes could pass for another client's request (RFC 9112, section 11.2).
//
// Refused with 400:
// - a line that does not end with CR LF, and an empty first line;
// - a request line that is not METHOD /TARGET HTTP/1.0 or 1.1, with one space between them;
// - a field with a space before the colon, a folded field, control characters;
// - Content-Length beside Transfer-Encoding; a field that this server uses twice, but for Connection;
// - a length that is not plain digits;
// - a transfer coding other than chunked, or one in HTTP/1.0; a body where the method has none;
// - HTTP/1.1 without Host.
// Refused with 415, because nobody here takes them:
// - a body of parts (multipart). The library would go through such a body byte by byte, and through each of
//   its lines once for each of its bytes;
// - a packed body (Content-Encoding, `identity` too). The library would unpack it, and no limit of its counts
//   what comes out: some hundred bytes of brotli are half a gigabyte.
// Refused with 417: an expectation that is not 100-continue. Refused with 431: more than kMostHeadBytes or
// kMostHeadLines.
//
// The library gets `text`: the same request with the fields that somebody here uses, and no others. An
// expectation is left out where no body waits for it.
//
// Thread rule: one thread, one request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gossamer::host {

inline constexpr std::size_t kMostHeadBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostHeadLines = 100;  // without the empty one

struct RequestHead {
  std::string text = {};  // with the empty line
  bool is_page = false;   // GET or HEAD: it asks for something that is ready
  bool is_last = false;   // the client wants the connection to end with the reply
  bool chunked = false;
  std::uint64_t body_bytes = 0;  // 0 for a chunked body
};

// A reply for a request that goes no further. The connection ends with it.
struct HttpRefusal {
  int status = 400;
  Error error = {};
};

class HeadReader {
 public:
  enum class State { kMore, kWhole, kRefused };

  // Takes bytes up to the end of the head; `used` says how many. Requires that no other state than kMore
  // came.
  [[nodiscard]] State take(std::string_view bytes, std::size_t& used);

  [[nodiscard]] bool begun() const { return bytes_ > 0; }
  [[nodiscard]] const RequestHead& head() const { return head_; }
  [[nodiscard]] const HttpRefusal& refusal() const { return *refusal_; }

 private:
  void end_line();
  void request_line();
  void field();
  void finish();
  void read_length();
  void read_coding();
  void read_connection();
  void read_type();
  [[nodiscard]] const std::string* find(const std::string& name) const;
  void refuse(std::string got, std::string expected, int status = 400);

  std::size_t bytes_ = 0;
  std::size_t lines_ = 0;
  std::string line_;
  std::string method_;
  std::string target_;
  std::string version_;
  std::map<std::string, std::string> fields_;  // those that somebody uses; names in lower case
  bool whole_ = false;
  RequestHead head_;
  std::optional<HttpRefusal> refusal_;
};

}  // namespace gossamer::host
