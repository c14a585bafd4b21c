// SPDX-License-Identifier: Apache-2.0
//
// ChunkCheck: goes along with the bytes of a chunked body and finds its end. The HTTP library takes more
// kinds of chunks than others do, so only the plain form passes:
// - for each chunk a size of 1 to 8 hexadecimal digits, CR LF, so many bytes, CR LF;
// - at the end the size 0, CR LF, CR LF.
// Extensions and trailers are refused.
//
// Thread rule: one thread, one body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gossamer::host {

class ChunkCheck {
 public:
  // How many of these bytes belong to the body. All of them, unless it ends before, or is not in the plain
  // form.
  [[nodiscard]] std::size_t pass(std::string_view bytes);
  [[nodiscard]] bool ended() const { return place_ == Place::kEnd; }
  [[nodiscard]] bool refused() const { return place_ == Place::kRefused; }

 private:
  enum class Place { kSize, kSizeEnd, kData, kDataCr, kDataLf, kLastCr, kLastLf, kEnd, kRefused };

  void next(char c);
  void digit(char c);

  Place place_ = Place::kSize;
  std::size_t digits_ = 0;
  std::uint64_t left_ = 0;  // bytes of this chunk
};

}  // namespace gossamer::host
