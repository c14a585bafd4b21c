// SPDX-License-Identifier: Apache-2.0
//
// Keys and certificates in a directory, DIR/credentials. By them a node is known, and on the
// coordinator's machine the run's authority too (docs/protocols/admission.md). Every file is readable
// by its owner only. A crash leaves whole files. A membership counts from the moment when its last
// file, certificate.pem, is there.
//
//   key.pem, authority.pem, certificate.pem   of a node: its name is "node-" and its number,
//                                             the authority's name is that of the run
//   authority-key.pem                         beside the coordinator
//
// Errors name the file or directory. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "host/api/disk.h"
#include "host/grpc/certificates.h"
#include "host/grpc/network.h"

namespace gossamer::node {

// A node of a run, with its credentials.
struct Membership {
  NodeId node;
  std::string run;
  host::NetworkCredentials credentials;
};

// The credentials on the coordinator's machine.
struct RunCredentials {
  host::KeyAndCertificate authority;
  Membership own;
};

[[nodiscard]] std::string credentials_directory(const std::string& directory);

// Whether load_membership() has something to load.
[[nodiscard]] Result<bool> has_membership(host::Disk& disk, const std::string& directory);

// How long the authority of a run holds, and a node's certificate where nobody chose otherwise. A node renews
// its own long before (renewal.h).
inline constexpr int kAuthorityDays = 3650;
inline constexpr std::int64_t kCertificateSeconds = std::int64_t{7} * 24 * 3600;

// Makes an authority for the run and the coordinator's certificate, and writes both. kUsage where credentials
// are already, because nodes that trust them would be lost. `run` has 1..64 bytes. `validity` is that of the
// coordinator's certificate.
[[nodiscard]] Result<RunCredentials> create_run_credentials(host::Disk& disk, const std::string& directory,
                                                            const std::string& run,
                                                            const host::Validity& validity);
[[nodiscard]] Result<RunCredentials> load_run_credentials(host::Disk& disk, const std::string& directory,
                                                          double now_seconds);

// Makes another certificate for the coordinator's key.
[[nodiscard]] Result<Membership> renew_own(const RunCredentials& credentials, const host::Validity& validity);

// Keeps a membership, durable when it returns. It replaces an earlier one. A crash leaves the earlier one,
// the new one, or, where the new one has another key, none.
[[nodiscard]] Result<void> keep_membership(host::Disk& disk, const std::string& directory,
                                           const Membership& membership);

// A renewed membership is in use before it is kept. A disk that is full for a while would else lock the node
// out. keep() is to be called often, and tries each minute until it has worked.
class UnkeptMembership {
 public:
  static constexpr Duration kTryEvery{60'000'000'000};
  void renewed(Instant now) { next_ = now; }
  // The error is that of keep_membership().
  [[nodiscard]] Result<void> keep(host::Disk& disk, const std::string& directory,
                                  const Membership& membership, Instant now);

 private:
  std::optional<Instant> next_;  // attempt
};

// Where the authority's key is too, a certificate that does not hold any more is renewed. A coordinator may
// have been away for longer than its certificate holds.
[[nodiscard]] Result<Membership> load_membership(host::Disk& disk, const std::string& directory,
                                                 double now_seconds);

// The membership of a node whose certificate has ended, if all else fits; nothing otherwise. Such a node was
// away for long, and asks for another certificate (returning.h).
[[nodiscard]] std::optional<Membership> ended_membership(host::Disk& disk, const std::string& directory,
                                                         double now_seconds);
// The authority's certificate, whether or not the node's own holds.
[[nodiscard]] Result<std::string> load_authority(host::Disk& disk, const std::string& directory);

// The node and run that the credentials name, if they fit together and are valid. Errors are those of
// host::check_credentials(), without `where`.
[[nodiscard]] Result<Membership> membership_of(host::NetworkCredentials credentials, double now_seconds,
                                               host::Ended ended = host::Ended::kRefused);

}  // namespace gossamer::node
