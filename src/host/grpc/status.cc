// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/status.h"

#include <gossamer/error.pb.h>

#include <utility>

#include "base/check.h"
#include "host/api/question.h"

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
  wire::ErrorMessage message;
  message.set_kind(static_cast<std::uint32_t>(error.kind));
  message.set_where(error.where);
  message.set_what(error.what);
  message.set_got(error.got);
  message.set_expected(error.expected);
  message.set_fix(error.fix);
  const auto code = use == StatusUse::kBusy ? grpc::StatusCode::RESOURCE_EXHAUSTED : code_of(error.kind);
  return {code, error.message().substr(0, kMaxMessage), message.SerializeAsString()};
}

Error to_error(const grpc::Status& status, const std::string& where) {
  CHECK(!status.ok());
  wire::ErrorMessage message;
  const auto code = status.error_code();
  const bool read = !status.error_details().empty() && message.ParseFromString(status.error_details()) &&
                    message.kind() >= static_cast<std::uint32_t>(ErrorKind::kFailed) &&
                    message.kind() <= static_cast<std::uint32_t>(ErrorKind::kRefused);
  // The details of other services are messages too, which may look like this one.
  const bool ours = read && (code == code_of(static_cast<ErrorKind>(message.kind())) ||
                             code == grpc::StatusCode::RESOURCE_EXHAUSTED);
  if (ours) {
    return made_fit({.kind = static_cast<ErrorKind>(message.kind()),
                     .where = message.where().empty() ? where : message.where(),
                     .what = message.what(),
                     .got = message.got(),
                     .expected = message.expected(),
                     .fix = message.fix()});
  }
  return made_fit(
      {.where = where,
       .what = "the question failed: " + status.error_message(),
       .fix = code == grpc::StatusCode::UNAVAILABLE
                  ? "look whether the coordinator runs, and whether this is the port of its join line"
                  : ""});
}

}  // namespace gossamer::host
