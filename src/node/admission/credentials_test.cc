// SPDX-License-Identifier: Apache-2.0
#include "node/admission/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "cluster/admission/enrolment.h"
#include "cluster/control/view.h"
#include "host/api/files.h"
#include "host/posix/disk.h"
#include "host/sim/disk.h"

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;

constexpr host::Validity kValid{.now_seconds = 1.8e9, .days = 30};
constexpr double kNow = kValid.now_seconds;
constexpr double kDay = 24 * 3600;

// Created credentials are loaded again, with their names. A second creation is refused.
TEST(Credentials, OfARun) {
  host::SimDisk disk{{}};
  EXPECT_FALSE(*has_membership(disk, "run"));
  EXPECT_FALSE(load_run_credentials(disk, "run", kNow).ok());
  const auto made = create_run_credentials(disk, "run", "run-1", kValid);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_TRUE(*has_membership(disk, "run"));
  const auto loaded = load_run_credentials(disk, "run", kNow);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->authority.key, made->authority.key);
  EXPECT_EQ(loaded->own.node, cluster::kCoordinatorNode);
  EXPECT_EQ(loaded->own.run, "run-1");
  EXPECT_EQ(loaded->own.credentials.certificate, made->own.credentials.certificate);
  const auto again = create_run_credentials(disk, "run", "run-2", kValid);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(load_run_credentials(disk, "run", kNow)->own.run, "run-1");
}

// A missing file is named. Damaged, swapped or outdated files are refused by directory, and
// the error says what does not fit.
TEST(Credentials, DamageIsNamed) {
  host::SimDisk disk{{}};
  ASSERT_TRUE(create_run_credentials(disk, "run", "run-1", kValid).ok());
  ASSERT_TRUE(create_run_credentials(disk, "other", "run-1", kValid).ok());
  for (const char* file : {"key.pem", "authority.pem", "certificate.pem", "authority-key.pem"}) {
    const std::string path = std::string("run/credentials/") + file;
    const std::string good = *host::read_text(disk, path);
    const std::string foreign = *host::read_text(disk, std::string("other/credentials/") + file);
    for (const std::string& text :
         {std::string(), std::string("garbage"), good.substr(0, good.size() / 2), foreign}) {
      ASSERT_TRUE(host::replace_file(disk, path, std::string_view(text)).ok());
      const auto loaded = load_run_credentials(disk, "run", kNow);
      ASSERT_FALSE(loaded.ok()) << file;
      EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData);
      EXPECT_EQ(loaded.error().where, "run/credentials");
    }
    ASSERT_TRUE(disk.remove_all(path).ok());
    EXPECT_THAT(load_run_credentials(disk, "run", kNow).error().message(), HasSubstr(path));
    ASSERT_TRUE(host::replace_file(disk, path, std::string_view(good)).ok());
    ASSERT_TRUE(load_run_credentials(disk, "run", kNow).ok());
  }
  const auto later = load_run_credentials(disk, "run", kNow + 3700 * kDay);
  EXPECT_EQ(later.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(later.error().message(), HasSubstr("expired"));
}

// A coordinator that was away for longer than its certificate held renews it when it loads it, with the same
// key. A node without the authority's key cannot, and asks for another by what it has.
TEST(Credentials, AwayForLong) {
  host::SimDisk disk{{}};
  const auto made = create_run_credentials(disk, "run", "run-1", kValid);
  ASSERT_TRUE(made.ok());
  const double later = kNow + 31 * kDay;
  EXPECT_FALSE(ended_membership(disk, "run", kNow));
  const auto loaded = load_run_credentials(disk, "run", later);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->own.node, cluster::kCoordinatorNode);
  EXPECT_EQ(loaded->own.credentials.key, made->own.credentials.key);
  EXPECT_NE(loaded->own.credentials.certificate, made->own.credentials.certificate);
  EXPECT_EQ(host::time_of(loaded->own.credentials.certificate)->until, later + kCertificateSeconds);
  EXPECT_EQ(load_run_credentials(disk, "run", later)->own.credentials.certificate,
            loaded->own.credentials.certificate);

  ASSERT_TRUE(keep_membership(disk, "node", made->own).ok());
  const auto node = load_membership(disk, "node", later);
  ASSERT_FALSE(node.ok());
  EXPECT_EQ(node.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(node.error().fix, HasSubstr("clock"));
  EXPECT_EQ(*load_authority(disk, "node"), made->authority.certificate);
}

// Claim: a membership has ended once its certificate has, and stays usable for a return for as long as the
// authority holds. One that holds, or has not begun, or does not fit its key, has not ended.
TEST(Credentials, Ended) {
  host::SimDisk disk{{}};
  const auto made = create_run_credentials(disk, "run", "run-1", kValid);
  ASSERT_TRUE(made.ok() && keep_membership(disk, "node", made->own).ok());
  for (const double days : {30.0, 31.0, 400.0, 3649.0}) {
    const auto ended = ended_membership(disk, "node", kNow + days * kDay);
    ASSERT_TRUE(ended) << days;
    EXPECT_EQ(ended->node, cluster::kCoordinatorNode);
    EXPECT_EQ(ended->run, "run-1");
    EXPECT_EQ(ended->credentials.key, made->own.credentials.key);
  }
  for (const double days : {-400.0, -2.0, 0.0, 29.9, 3651.0})
    EXPECT_FALSE(ended_membership(disk, "node", kNow + days * kDay)) << days;
  Membership swapped = made->own;
  swapped.credentials.key = host::make_request()->key;
  ASSERT_TRUE(keep_membership(disk, "node", swapped).ok());
  EXPECT_FALSE(ended_membership(disk, "node", kNow + 31 * kDay));
  EXPECT_FALSE(ended_membership(disk, "nowhere", kNow + 31 * kDay));
}

// Claim: the authority of a run holds for ten years, and what it renews for a coordinator that was away holds
// for a week.
TEST(Credentials, HoldForYearsAndDays) {
  host::SimDisk disk{{}};
  ASSERT_TRUE(create_run_credentials(disk, "run", "run-1", kValid).ok());
  const double later = kNow + 3640 * kDay;
  const auto loaded = load_run_credentials(disk, "run", later);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(host::time_of(loaded->own.credentials.certificate)->until, later + 7 * kDay);
  EXPECT_EQ(host::time_of(loaded->authority.certificate)->until, kNow + 3650 * kDay);
}

// Claim: every file of credentials is readable by its owner alone, whatever the umask.
TEST(Credentials, AreTheirOwnersAlone) {
  host::PosixDisk disk;
  const std::string directory = ::testing::TempDir() + "gossamer_credentials_" + std::to_string(::getpid());
  ASSERT_TRUE(disk.remove_all(directory).ok());
  const mode_t before = ::umask(0);
  const auto made = create_run_credentials(disk, directory + "/run", "run-1", kValid);
  const bool kept = made.ok() && keep_membership(disk, directory + "/node", made->own).ok();
  static_cast<void>(::umask(before));
  ASSERT_TRUE(kept);
  std::size_t files = 0;
  for (const char* const part : {"/run/credentials/", "/node/credentials/"}) {
    const auto names = disk.list(directory + part);
    ASSERT_TRUE(names.ok());
    for (const std::string& name : *names) {
      struct stat info{};
      ASSERT_EQ(::stat((directory + part + name).c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0777U, 0600U) << part << name;
      ++files;
    }
  }
  EXPECT_EQ(files, 7U);
  EXPECT_TRUE(disk.remove_all(directory).ok());
}

// Only names that a node has make a membership.
TEST(Credentials, NodeNames) {
  const auto authority = host::make_authority("run-1", kValid);
  const auto own = host::make_request();
  const auto named = [&](const std::string& name) {
    return membership_of({.authority = authority->certificate,
                          .certificate = *host::sign_request(*authority, own->request, name, kValid),
                          .key = own->key},
                         kNow);
  };
  EXPECT_EQ(named("node-1")->node, NodeId{1});
  EXPECT_EQ(named("node-18446744073709551615")->node, NodeId{18446744073709551615U});
  for (const char* bad :
       {"node-0", "node-01", "node-1x", "node-", "1", "mode-1", "node-18446744073709551616"})
    EXPECT_FALSE(named(bad).ok()) << bad;
}

// A membership is there whole or not at all after a crash at any moment of keeping it.
TEST(Credentials, CrashWhileKeeping) {
  host::SimDisk source{{}};
  const auto membership = create_run_credentials(source, "run", "run-1", kValid);
  ASSERT_TRUE(membership.ok());
  for (std::uint64_t k = 0;; ++k) {
    host::SimDisk disk({.seed = 1});
    ASSERT_TRUE(disk.make_directories("node").ok() && disk.sync_directory(".").ok());
    disk.restart_count({.seed = k, .crash_at_operation = k});
    const bool kept = keep_membership(disk, "node", membership->own).ok();
    const auto later = disk.after_crash();
    const auto there = has_membership(*later, "node");
    ASSERT_TRUE(there.ok());
    if (kept || *there) {
      EXPECT_TRUE(load_membership(*later, "node", kNow).ok()) << "crash at " << k;
    }
    if (!kept) continue;
    EXPECT_GT(k, 10U);
    break;
  }
}

// Claim: a crash while a membership takes the place of another one leaves the old one, the new one, or none
// where the new one has another key. A renewed certificate of the same key never leaves none. Nothing is left
// that is there and cannot be loaded: such a node would never start again.
TEST(Credentials, CrashWhileReplacing) {
  host::SimDisk source{{}};
  const auto before = create_run_credentials(source, "run", "run-1", kValid);
  const auto another = create_run_credentials(source, "other", "run-1", kValid);
  ASSERT_TRUE(before.ok() && another.ok());
  const auto renewed = renew_own(*before, {.now_seconds = kNow, .days = 31});
  ASSERT_TRUE(renewed.ok());
  for (const Membership& after : {another->own, *renewed}) {
    const bool same_key = after.credentials.key == before->own.credentials.key;
    bool kept = false;
    for (std::uint64_t k = 0; !kept; ++k) {
      host::SimDisk disk({.seed = 1});
      ASSERT_TRUE(disk.make_directories("node").ok() && disk.sync_directory(".").ok());
      ASSERT_TRUE(keep_membership(disk, "node", before->own).ok());
      disk.restart_count({.seed = k, .crash_at_operation = k});
      kept = keep_membership(disk, "node", after).ok();
      const auto later = disk.after_crash();
      const bool there = *has_membership(*later, "node");
      EXPECT_TRUE(there || (!same_key && !kept)) << "crash at " << k;
      if (!there) continue;
      const auto loaded = load_membership(*later, "node", kNow);
      ASSERT_TRUE(loaded.ok()) << "crash at " << k << ": " << loaded.error().message();
      const std::string& certificate = loaded->credentials.certificate;
      EXPECT_TRUE(certificate == after.credentials.certificate ||
                  (!kept && certificate == before->own.credentials.certificate));
    }
  }
}

// Claim: a renewal that fails at any operation of the disk, as where descriptors are short, takes no
// certificate away. The node has the old one or the new one.
TEST(Credentials, FailuresWhileRenewing) {
  host::SimDisk source{{}};
  const auto before = create_run_credentials(source, "run", "run-1", kValid);
  ASSERT_TRUE(before.ok());
  const auto after = renew_own(*before, {.now_seconds = kNow, .days = 31});
  ASSERT_TRUE(after.ok());
  bool kept = false;
  for (std::uint64_t k = 0; !kept; ++k) {
    host::SimDisk disk({.seed = 1});
    ASSERT_TRUE(disk.make_directories("node").ok());
    ASSERT_TRUE(keep_membership(disk, "node", before->own).ok());
    disk.restart_count({.seed = k, .fail_at_operation = k});
    kept = keep_membership(disk, "node", *after).ok();
    disk.restart_count({});
    const auto loaded = load_membership(disk, "node", kNow);
    ASSERT_TRUE(loaded.ok()) << "failure at " << k << ": " << loaded.error().message();
  }
}

// Claim: what a full disk did not keep is kept within a minute after there is room, and then no more.
TEST(Credentials, KeptOnceThereIsRoom) {
  host::SimDisk disk{{}};
  const auto made = create_run_credentials(disk, "run", "run-1", kValid);
  ASSERT_TRUE(made.ok());
  const auto after = renew_own(*made, {.now_seconds = kNow, .days = 31});
  ASSERT_TRUE(after.ok());
  UnkeptMembership unkept;
  Instant now;
  EXPECT_TRUE(unkept.keep(disk, "run", *after, now).ok());
  EXPECT_EQ(load_membership(disk, "run", kNow)->credentials.certificate, made->own.credentials.certificate);
  disk.restart_count({.capacity_bytes = 0});
  unkept.renewed(now);
  EXPECT_FALSE(unkept.keep(disk, "run", *after, now).ok());
  now = now + from_seconds(59);
  EXPECT_TRUE(unkept.keep(disk, "run", *after, now).ok());  // no attempt
  disk.restart_count({});
  now = now + from_seconds(1);
  EXPECT_TRUE(unkept.keep(disk, "run", *after, now).ok());
  EXPECT_EQ(load_membership(disk, "run", kNow)->credentials.certificate, after->credentials.certificate);
  const std::uint64_t operations = disk.operations();
  EXPECT_TRUE(unkept.keep(disk, "run", *after, now + from_seconds(600)).ok());
  EXPECT_EQ(disk.operations(), operations);
}

}  // namespace
}  // namespace gossamer::node
