// SPDX-License-Identifier: Apache-2.0
#include "node/work_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "host/posix/clock.h"

namespace gossamer::node {
namespace {

// An engine that wants one piece of work after the other, and writes down which thread did what.
class BusyEngine final : public cluster::Engine {
 public:
  explicit BusyEngine(int pieces) : left_(pieces) {}

  void on(const cluster::ProcessEvent&, Instant) override {}
  void tick(Instant) override {}
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return std::nullopt; }
  void drain(const std::string&, Instant) override {}
  [[nodiscard]] std::optional<Error> failure() const override { return std::nullopt; }
  [[nodiscard]] std::vector<CounterSample> counters() const override { return {}; }
  [[nodiscard]] Work take_work() override {
    if (left_ == 0 || working_) return {};
    --left_;
    working_ = true;
    // This is unguarded on purpose. A sanitizer sees work that overlaps other work, or what the loop does.
    return [this] {
      EXPECT_EQ(under_way_.fetch_add(1), 0);
      workers.push_back(std::this_thread::get_id());
      if (during) during();
      under_way_.fetch_sub(1);
    };
  }
  void worked(Instant) override {
    working_ = false;
    told.push_back(std::this_thread::get_id());
  }

  [[nodiscard]] Work take_side_work() override { return std::exchange(side_work, {}); }
  void side_worked(Instant) override {
    side_told.push_back(std::this_thread::get_id());
    on_side_worked();
  }

  std::function<void()> during = {};
  Work side_work = {};
  std::function<void()> on_side_worked = {};
  std::vector<std::thread::id> side_told;
  std::vector<std::thread::id> workers;
  std::vector<std::thread::id> told;

 private:
  int left_;
  bool working_ = false;
  std::atomic<int> under_way_ = 0;
};

std::optional<Instant> take(WorkThread& worker) {
  worker.take();
  return std::nullopt;
}

// All pieces are done, one after the other, on one thread that is not the loop's. The
// engine hears of each on the loop.
TEST(WorkThread, DoesWorkOffTheLoopAndTellsTheEngineOnIt) {
  const host::PosixClock clock;
  EventLoop loop(clock);
  BusyEngine engine(100);
  WorkThread worker(loop, engine);
  loop.run([&] { return take(worker); }, [&] { return engine.told.size() == 100; });
  const auto here = std::this_thread::get_id();
  EXPECT_EQ(engine.told, std::vector(100, here));
  ASSERT_EQ(engine.workers.size(), 100U);
  EXPECT_NE(engine.workers[0], here);
  EXPECT_EQ(engine.workers, std::vector(100, engine.workers[0]));
}

// The loop goes on while work waits for something that only the loop does.
TEST(WorkThread, LongWorkHoldsNothingUp) {
  const host::PosixClock clock;
  EventLoop loop(clock);
  BusyEngine engine(1);
  std::promise<void> turned;
  engine.during = [&loop, &turned] {
    loop.post({}, [&turned] { turned.set_value(); });
    turned.get_future().wait();
  };
  WorkThread worker(loop, engine);
  loop.run([&] { return take(worker); }, [&] { return engine.told.size() == 1; });
  EXPECT_EQ(engine.workers.size(), 1U);
}

// Work of the second queue is done while that of the first is under way, on another thread. The engine hears
// of it on the loop.
TEST(WorkThread, SideWorkGoesBesideTheOther) {
  const host::PosixClock clock;
  EventLoop loop(clock);
  BusyEngine engine(1);
  std::promise<void> summed;
  engine.during = [&summed] { summed.get_future().wait(); };
  std::thread::id side;
  engine.side_work = [&side] { side = std::this_thread::get_id(); };
  engine.on_side_worked = [&summed] { summed.set_value(); };
  WorkThread worker(loop, engine);
  loop.run([&] { return take(worker); }, [&] { return engine.told.size() == 1; });
  ASSERT_EQ(engine.side_told, std::vector(1, std::this_thread::get_id()));
  EXPECT_NE(side, std::this_thread::get_id());
  EXPECT_NE(side, engine.workers.at(0));
}

// The destructor returns when the work under way is done, and the engine is told of nothing more.
TEST(WorkThread, TheEndWaitsForWorkUnderWay) {
  const host::PosixClock clock;
  EventLoop loop(clock);
  auto engine = std::make_unique<BusyEngine>(2);
  std::promise<void> begun;
  std::promise<void> go_on;
  bool finished = false;
  engine->during = [&] {
    begun.set_value();
    go_on.get_future().wait();
    finished = true;
  };
  auto worker = std::make_unique<WorkThread>(loop, *engine);
  const auto under_way = begun.get_future();
  loop.run([&] { return take(*worker); },
           [&] { return under_way.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  go_on.set_value();
  worker.reset();
  EXPECT_TRUE(finished);
  EXPECT_TRUE(engine->told.empty());
  engine.reset();
}

}  // namespace
}  // namespace gossamer::node
