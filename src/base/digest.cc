// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <xxhash.h>

#include "base/check.h"

namespace gossamer {

Digest::Digest() : state_(XXH3_createState()) {
  CHECK(state_ != nullptr && XXH3_64bits_reset(state_.get()) == XXH_OK);
}

void Digest::add(std::span<const std::byte> bytes) {
  CHECK(XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()) == XXH_OK, bytes.size());
}

std::uint64_t Digest::value() const { return XXH3_64bits_digest(state_.get()); }

void Digest::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

}  // namespace gossamer
