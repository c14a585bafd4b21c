// SPDX-License-Identifier: Apache-2.0
//
// An Error as a gRPC status, and back: docs/protocols/admission.md. Thread rule: plain functions.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "base/result.h"

namespace gossamer::host {

// `busy`: RESOURCE_EXHAUSTED whatever the kind.
enum class StatusUse { kAnswer, kBusy };
[[nodiscard]] grpc::Status to_status(Error error, StatusUse use = StatusUse::kAnswer);

// Requires a status that is not OK. `where` stands for an error that names nothing. Whatever the other end
// sends, the error is fit to be shown (made_fit). One without our details is kFailed whatever the code says:
// it is no answer of ours, and whoever was meant may give another one elsewhere.
[[nodiscard]] Error to_error(const grpc::Status& status, const std::string& where);

}  // namespace gossamer::host
