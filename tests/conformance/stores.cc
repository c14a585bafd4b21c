// SPDX-License-Identifier: Apache-2.0
#include "stores.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/check.h"
#include "etcd_server.h"
#include "host/posix/clock.h"
#include "host/posix/disk.h"
#include "host/posix/etcd_store.h"
#include "host/posix/sqlite_store.h"
#include "host/sim/clock.h"
#include "host/sim/store.h"
#include "memory_directory.h"

namespace gossamer::host {
namespace {

class SqliteUnderTest final : public StoreUnderTest {
 public:
  SqliteUnderTest() : directory_(fmt::format("{}gossamer_store_{}", memory_directory(), ::getpid())) {
    CHECK(disk_.remove_all(directory_).ok());
    CHECK(disk_.make_directories(directory_).ok());
  }
  ~SqliteUnderTest() override { EXPECT_TRUE(disk_.remove_all(directory_).ok()); }

  std::unique_ptr<Store> open() override { return std::make_unique<SqliteStore>(path()); }
  void use_short_lease() override {}
  void start_anew() override {
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) CHECK(disk_.remove_all(path() + suffix).ok());
    ++number_;
  }
  void depose() override { CHECK(disk_.remove_all(path() + ".lock").ok()); }
  [[nodiscard]] bool needs_keeping() const override { return false; }
  [[nodiscard]] Instant now() const override { return clock_.now(); }
  void wait_a_little() override {}

 private:
  [[nodiscard]] std::string path() const { return fmt::format("{}/{}.db", directory_, number_); }

  PosixDisk disk_;
  PosixClock clock_;
  std::string directory_;
  int number_ = 0;
};

class EtcdUnderTest final : public StoreUnderTest {
 public:
  EtcdUnderTest() {
    auto server = EtcdServer::start();
    CHECK(server.ok(), server.error().message());
    server_ = std::move(*server);
  }

  std::unique_ptr<Store> open() override {
    // A generous time-out: a machine that is busy with other work is no failure of the store.
    auto store = EtcdStore::create(
        {.urls = {server_->url()}, .run = run(), .lease = lease_, .reply_timeout = from_seconds(20)});
    CHECK(store.ok(), store.error().message());
    return std::move(*store);
  }
  void use_short_lease() override { lease_ = from_seconds(2); }
  void start_anew() override { ++number_; }
  void depose() override { server_->depose(run()); }
  [[nodiscard]] bool needs_keeping() const override { return true; }
  [[nodiscard]] Instant now() const override { return clock_.now(); }
  void wait_a_little() override { server_->watch(from_milliseconds(20)); }

 private:
  [[nodiscard]] std::string run() const { return fmt::format("run-{}", number_); }

  PosixClock clock_;
  std::unique_ptr<EtcdServer> server_;
  Duration lease_ = from_seconds(60);
  int number_ = 0;
};

class SimUnderTest final : public StoreUnderTest {
 public:
  explicit SimUnderTest(std::optional<Duration> lease) : lease_(lease) { start_anew(); }

  std::unique_ptr<Store> open() override { return medium_->open(); }
  void use_short_lease() override {}
  void start_anew() override {
    medium_ = std::make_unique<SimStoreMedium>(clock_, SimStoreOptions{.lease = lease_});
  }
  void depose() override { medium_->depose(); }
  [[nodiscard]] bool needs_keeping() const override { return lease_.has_value(); }
  [[nodiscard]] Instant now() const override { return clock_.now(); }
  void wait_a_little() override { clock_.advance(from_milliseconds(50)); }

 private:
  SimClock clock_;
  std::optional<Duration> lease_;
  std::unique_ptr<SimStoreMedium> medium_;
};

}  // namespace

std::string name(StoreKind kind) {
  switch (kind) {
    case StoreKind::kSqlite: return "sqlite";
    case StoreKind::kEtcd: return "etcd";
    case StoreKind::kSimLease: return "sim_lease";
    case StoreKind::kSimLock: return "sim_lock";
  }
  return "unknown";
}

void PrintTo(StoreKind kind, std::ostream* out) { *out << name(kind); }

std::unique_ptr<StoreUnderTest> make_store_under_test(StoreKind kind) {
  switch (kind) {
    case StoreKind::kSqlite: return std::make_unique<SqliteUnderTest>();
    case StoreKind::kEtcd: return EtcdServer::program().empty() ? nullptr : std::make_unique<EtcdUnderTest>();
    case StoreKind::kSimLease: return std::make_unique<SimUnderTest>(from_seconds(2));
    case StoreKind::kSimLock: return std::make_unique<SimUnderTest>(std::nullopt);
  }
  return nullptr;
}

void StoreTest::SetUp() {
  system_ = make_store_under_test(GetParam());
  if (!system_) GTEST_SKIP() << "needs the program etcd (Debian: etcd-server)";
}

Generation StoreTest::lead(Store& store) {
  for (const Instant start = system_->now(); system_->now() - start < from_seconds(3);) {
    const auto won = store.campaign({.name = "candidate", .address = "10.0.0.1:7070"});
    EXPECT_TRUE(won.ok()) << won.error().message();
    if (won.ok() && *won) return **won;
    system_->wait_a_little();
  }
  ADD_FAILURE() << "does not lead within three seconds";
  return {};
}

}  // namespace gossamer::host
