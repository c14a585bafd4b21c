// SPDX-License-Identifier: Apache-2.0
#include "node/admission/credentials.h"

#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"
#include "cluster/admission/enrolment.h"
#include "cluster/control/view.h"
#include "host/api/files.h"

namespace gossamer::node {
namespace {

constexpr std::string_view kKey = "/key.pem";
constexpr std::string_view kAuthority = "/authority.pem";
constexpr std::string_view kCertificate = "/certificate.pem";
constexpr std::string_view kAuthorityKey = "/authority-key.pem";
constexpr std::size_t kMaxFile = std::size_t{64} << 10;
constexpr std::size_t kMaxRun = 64;

std::string path_of(const std::string& directory, std::string_view file) {
  return credentials_directory(directory).append(file);
}

Result<void> make_directory(host::Disk& disk, const std::string& directory) {
  if (auto made = disk.make_directories(credentials_directory(directory)); !made.ok()) return made;
  return disk.sync_directory(directory);
}

Result<NodeId> node_of(const std::string& name) {
  if (const auto node = certified_node(name)) return *node;
  return Error{.kind = ErrorKind::kBadData,
               .what = "the certificate is of no node",
               .got = "'" + name + "'",
               .expected = "a name such as node-17"};
}

Error with_where(Error error, const std::string& directory) {
  error.where = credentials_directory(directory);
  error.fix =
      error.kind == ErrorKind::kRefused
          ? "look at this machine's clock; if it is right, 'gossamer join' of a node renews its certificate"
          : "restore the files, or remove them and join the run anew with a token";
  return error;
}

Result<host::NetworkCredentials> load_credentials(host::Disk& disk, const std::string& directory) {
  host::NetworkCredentials credentials;
  for (const auto& [file, text] :
       {std::pair(kKey, &credentials.key), std::pair(kAuthority, &credentials.authority),
        std::pair(kCertificate, &credentials.certificate)}) {
    auto read = host::read_text(disk, path_of(directory, file), kMaxFile);
    if (!read.ok()) return read.error();
    *text = *std::move(read);
  }
  return credentials;
}

// Another certificate for the key of the credentials, under the same name.
Result<Membership> renewed(const host::KeyAndCertificate& authority, const host::NetworkCredentials& own,
                           const host::Validity& validity) {
  const auto request = host::request_for(own.key);
  if (!request.ok()) return request.error();
  auto certificate =
      host::sign_request(authority, *request, certificate_name(cluster::kCoordinatorNode), validity);
  if (!certificate.ok()) return certificate.error();
  return membership_of({.authority = own.authority, .certificate = *std::move(certificate), .key = own.key},
                       validity.now_seconds);
}

}  // namespace

std::string credentials_directory(const std::string& directory) { return directory + "/credentials"; }

Result<bool> has_membership(host::Disk& disk, const std::string& directory) {
  return disk.exists(path_of(directory, kCertificate));
}

Result<Membership> membership_of(host::NetworkCredentials credentials, double now_seconds,
                                 host::Ended ended) {
  auto names = host::check_credentials(credentials, now_seconds, ended);
  if (!names.ok()) return names.error();
  const auto node = node_of(names->own);
  if (!node.ok()) return node.error();
  return Membership{.node = *node, .run = names->authority, .credentials = std::move(credentials)};
}

Result<void> keep_membership(host::Disk& disk, const std::string& directory, const Membership& membership) {
  if (auto made = make_directory(disk, directory); !made.ok()) return made;
  const host::NetworkCredentials& credentials = membership.credentials;
  // An old certificate beside a new key would be no membership at all, and the node would never start.
  const auto there = disk.exists(path_of(directory, kKey));
  if (!there.ok()) return there.error();
  const auto key = *there ? host::read_text(disk, path_of(directory, kKey), kMaxFile) : std::string();
  // A key that cannot be read for a moment may be the same one.
  if (!key.ok() && key.error().kind == ErrorKind::kFailed) return key.error();
  if (!key.ok() || *key != credentials.key) {
    if (auto gone = disk.remove_all(path_of(directory, kCertificate)); !gone.ok()) return gone;
    if (auto done = disk.sync_directory(credentials_directory(directory)); !done.ok()) return done;
  }
  for (const auto& [file, text] :
       {std::pair(kKey, &credentials.key), std::pair(kAuthority, &credentials.authority),
        std::pair(kCertificate, &credentials.certificate)}) {
    auto written = host::replace_private_file(disk, path_of(directory, file), *text);
    if (!written.ok()) return written;
  }
  return {};
}

Result<void> UnkeptMembership::keep(host::Disk& disk, const std::string& directory,
                                    const Membership& membership, Instant now) {
  if (!next_ || now < *next_) return {};
  next_ = now + kTryEvery;
  auto kept = keep_membership(disk, directory, membership);
  if (kept.ok()) next_.reset();
  return kept;
}

Result<Membership> load_membership(host::Disk& disk, const std::string& directory, double now_seconds) {
  auto read = load_credentials(disk, directory);
  if (!read.ok()) return read.error();
  const host::NetworkCredentials credentials = *std::move(read);
  auto membership = membership_of(credentials, now_seconds);
  if (!membership.ok() && membership.error().kind == ErrorKind::kRefused) {
    const auto key = host::read_text(disk, path_of(directory, kAuthorityKey), kMaxFile);
    if (key.ok()) {
      membership = renewed({.key = *key, .certificate = credentials.authority}, credentials,
                           {.now_seconds = now_seconds, .days = 0, .seconds = kCertificateSeconds});
      if (membership.ok()) {
        if (auto kept = keep_membership(disk, directory, *membership); !kept.ok()) return kept.error();
      }
    }
  }
  if (!membership.ok()) return with_where(membership.error(), directory);
  return membership;
}

std::optional<Membership> ended_membership(host::Disk& disk, const std::string& directory,
                                           double now_seconds) {
  auto credentials = load_credentials(disk, directory);
  if (!credentials.ok()) return std::nullopt;
  const auto time = host::time_of(credentials->certificate);
  if (!time.ok() || now_seconds < time->until) return std::nullopt;
  auto membership = membership_of(*std::move(credentials), now_seconds, host::Ended::kAccepted);
  return membership.ok() ? std::optional(*std::move(membership)) : std::nullopt;
}

Result<std::string> load_authority(host::Disk& disk, const std::string& directory) {
  return host::read_text(disk, path_of(directory, kAuthority), kMaxFile);
}

Result<RunCredentials> create_run_credentials(host::Disk& disk, const std::string& directory,
                                              const std::string& run, const host::Validity& validity) {
  CHECK(!run.empty() && run.size() <= kMaxRun, run);
  const auto there = has_membership(disk, directory);
  if (!there.ok()) return there.error();
  if (*there) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = credentials_directory(directory),
                 .what = "a run's credentials are here already",
                 .fix = "continue that run, or start the new one in another directory"};
  }
  auto authority = host::make_authority(run, {.now_seconds = validity.now_seconds, .days = kAuthorityDays});
  if (!authority.ok()) return authority.error();
  auto own = host::make_request();
  if (!own.ok()) return own.error();
  auto certificate =
      host::sign_request(*authority, own->request, certificate_name(cluster::kCoordinatorNode), validity);
  if (!certificate.ok()) return certificate.error();
  if (auto made = make_directory(disk, directory); !made.ok()) return made.error();
  auto written = host::replace_private_file(disk, path_of(directory, kAuthorityKey), authority->key);
  if (!written.ok()) return written.error();
  RunCredentials created{.authority = *authority,
                         .own = {.node = cluster::kCoordinatorNode,
                                 .run = run,
                                 .credentials = {.authority = authority->certificate,
                                                 .certificate = *std::move(certificate),
                                                 .key = own->key}}};
  if (auto kept = keep_membership(disk, directory, created.own); !kept.ok()) return kept.error();
  return created;
}

Result<Membership> renew_own(const RunCredentials& credentials, const host::Validity& validity) {
  return renewed(credentials.authority, credentials.own.credentials, validity);
}

Result<RunCredentials> load_run_credentials(host::Disk& disk, const std::string& directory,
                                            double now_seconds) {
  auto own = load_membership(disk, directory, now_seconds);
  if (!own.ok()) return own.error();
  auto key = host::read_text(disk, path_of(directory, kAuthorityKey), kMaxFile);
  if (!key.ok()) return key.error();
  // A key of another authority would sign certificates that no node believes.
  const host::NetworkCredentials authority{
      .authority = own->credentials.authority, .certificate = own->credentials.authority, .key = *key};
  if (auto fits = host::check_credentials(authority, now_seconds); !fits.ok()) {
    return with_where(fits.error(), directory);
  }
  return RunCredentials{.authority = {.key = *std::move(key), .certificate = own->credentials.authority},
                        .own = *std::move(own)};
}

}  // namespace gossamer::node
