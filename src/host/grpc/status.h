// SPDX-License-Identifier: Apache-2.0
//
// An Error as a gRPC status, and back: docs/protocols/admission.md. Thread rule: plain functions.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "base/result.h"

namespace gossamer::host {

// kBusy: the code is RESOURCE_EXHAUSTED, whatever the kind.
enum class StatusUse { kAnswer, kBusy };
[[nodiscard]] grpc::Status to_status(Error error, StatusUse use = StatusUse::kAnswer);

// The error that a status stands for. Requires a status that is not OK. `where` is taken for an error that
// names no place. Whatever the other end sends, the error is fit to be shown (made_fit). A status without our
// details gives kFailed whatever its code says: no process of the run has sent it. The right process may
// answer differently elsewhere.
[[nodiscard]] Error to_error(const grpc::Status& status, const std::string& where);

}  // namespace gossamer::host
