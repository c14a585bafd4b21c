// SPDX-License-Identifier: Apache-2.0
//
// FloatingModes: the rounding and flush modes of a thread as IEEE 754 has them, while an object lives: to the
// nearest, ties to even; denormal numbers stay what they are. Libraries change these modes for a whole thread
// (a module that is loaded, a pool of threads of others), and equal bits rest on them. The destructor sets
// the modes that were there before.
//
// Owner and thread: one; the constructor and the destructor run on the same thread.
#pragma once

#include <immintrin.h>

namespace gossamer::exact {

class FloatingModes {
 public:
  FloatingModes() : before_(_mm_getcsr()) { _mm_setcsr((before_ & ~kModes)); }
  FloatingModes(const FloatingModes&) = delete;
  FloatingModes& operator=(const FloatingModes&) = delete;
  ~FloatingModes() { _mm_setcsr((_mm_getcsr() & ~kModes) | (before_ & kModes)); }

 private:
  // Flush to zero, two bits of rounding, denormals are zeros.
  static constexpr unsigned kModes = 0x8000U | 0x6000U | 0x0040U;

  unsigned before_;
};

}  // namespace gossamer::exact
