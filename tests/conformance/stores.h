// SPDX-License-Identifier: Apache-2.0
//
// The stores as test parameters: SQLite's file, a real etcd, and the simulated one with a lease and with a
// lock. Each test has an empty store and opens as many handles as it likes; a handle stands for a process.
// Thread rule: the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>

#include "base/time.h"
#include "host/api/store.h"

namespace gossamer::host {

enum class StoreKind { kSqlite, kEtcd, kSimLease, kSimLock };

[[nodiscard]] std::string name(StoreKind kind);
void PrintTo(StoreKind kind, std::ostream* out);

class StoreUnderTest {
 public:
  StoreUnderTest() = default;
  StoreUnderTest(const StoreUnderTest&) = delete;
  StoreUnderTest& operator=(const StoreUnderTest&) = delete;
  virtual ~StoreUnderTest() = default;

  // A handle, as a new process would open it.
  [[nodiscard]] virtual std::unique_ptr<Store> open() = 0;
  // From now on handles have a lease of two seconds, if the store has leases to choose. Before, a lease is so
  // long that no busy machine outlasts it.
  virtual void use_short_lease() = 0;
  // From now on handles are for another store, an empty one. Older handles must be gone.
  virtual void start_anew() = 0;
  // Makes room for another leader, although the present one lives and has noticed nothing.
  virtual void depose() = 0;
  // Whether a leader that falls silent loses the lead although it lives.
  [[nodiscard]] virtual bool needs_keeping() const = 0;
  // Time, and the wait between two tries.
  [[nodiscard]] virtual Instant now() const = 0;
  virtual void wait_a_little() = 0;
};

// Null if the kind needs a program that is not there.
[[nodiscard]] std::unique_ptr<StoreUnderTest> make_store_under_test(StoreKind kind);

// An empty store in the running test. The test is skipped if there can be none.
class StoreTest : public ::testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override;

  // Campaigns until it leads, at most three seconds; returns the generation, or fails the test.
  [[nodiscard]] Generation lead(Store& store);

  std::unique_ptr<StoreUnderTest> system_;
};

}  // namespace gossamer::host
