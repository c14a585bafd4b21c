// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/status.h"

#include <gossamer/error.pb.h>

#include <optional>
#include <utility>

#include "base/check.h"
#include "host/api/question.h"
#include "host/posix/door/ask_messages.h"

namespace gossamer::host {
namespace {

// The message travels too, for clients that are not ours. Together with the details it must fit into gRPC's 8
// KiB of metadata, and it may grow threefold there.
constexpr std::size_t kMaxMessage = 300;

grpc::StatusCode code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRefused: return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorKind::kUsage:
    case ErrorKind::kBadData: return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorKind::kFailed: break;
  }
  return grpc::StatusCode::UNKNOWN;
}

}  // namespace

grpc::Status to_status(Error error, StatusUse use) {
  error = made_fit(std::move(error));
  const auto code = use == StatusUse::kBusy ? grpc::StatusCode::RESOURCE_EXHAUSTED : code_of(error.kind);
  return {code, error.message().substr(0, kMaxMessage), to_message(error).SerializeAsString()};
}

Error to_error(const grpc::Status& status, const std::string& where) {
  CHECK(!status.ok());
  wire::ErrorMessage message;
  const auto code = status.error_code();
  const bool parsed = !status.error_details().empty() && message.ParseFromString(status.error_details());
  const auto error = parsed ? read_error(message, where) : std::nullopt;
  // The details of other services are messages too, which may look like this one.
  const bool ours = error && (code == code_of(error->kind) || code == grpc::StatusCode::RESOURCE_EXHAUSTED);
  if (ours) return *error;
  return made_fit(
      {.where = where,
       .what = "the question failed: " + status.error_message(),
       .fix = code == grpc::StatusCode::UNAVAILABLE
                  ? "look whether the coordinator runs, and whether this is the port of its join line"
                  : ""});
}

}  // namespace gossamer::host
