// SPDX-License-Identifier: Apache-2.0
//
// What only etcd has: lost answers, late requests, addresses that fail, and state of other programs. A relay
// between the store and a real etcd fails at chosen requests. The interface's promises: tests/conformance.
#include "host/posix/etcd_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <functional>
#include <thread>

#include "conformance/etcd_server.h"
#include "host/posix/clock.h"
#include "host/posix/etcd_requests.h"
#include "host/posix/test_store_content.h"

// Debian's library is not instrumented, so ThreadSanitizer sees its memory but not its locks.
extern "C" const char*
__tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char*
__tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
  return "race:libcpp-httplib.so\n";
}

namespace gossamer::host {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kRun = "run";

// What becomes of a request at the relay.
enum class Fate { kPass, kLose, kLoseAnswer };

// Passes requests on to etcd, but loses those that the plan names: before etcd has seen them, or their
// answers. It can send lost requests late.
class Relay {
 public:
  using Plan = std::function<Fate(int request)>;

  explicit Relay(std::string target) : target_(std::move(target)) {
    server_.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      const Fate fate = plan_(requests_++);
      if (fate == Fate::kLose) lost_.push_back({request.path, request.body});
      if (fate != Fate::kLose) {
        auto [status, body] = pass_on(request.path, request.body);
        response.status = status;
        response.set_content(body, "application/json");
      }
      if (fate != Fate::kPass) {
        response = httplib::Response();
        response.status = 503;
      }
    });
    server_.set_tcp_nodelay(true);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    server_.stop();
    thread_.join();
  }

  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  // From now on, counting from 0; between requests only.
  void follow(Plan plan) {
    plan_ = std::move(plan);
    requests_ = 0;
  }
  [[nodiscard]] int requests() const { return requests_; }
  // Delivers what was lost, in order.
  void deliver_lost() {
    for (const auto& [path, body] : lost_) static_cast<void>(pass_on(path, body));
    lost_.clear();
  }

 private:
  [[nodiscard]] std::pair<int, std::string> pass_on(const std::string& path, const std::string& body) const {
    httplib::Client client(target_);
    client.set_tcp_nodelay(true);
    const auto reply = client.Post(path, body, "application/json");
    return reply ? std::pair(reply->status, reply->body) : std::pair(502, std::string());
  }

  std::string target_;
  httplib::Server server_;
  int port_ = 0;
  Plan plan_ = [](int) { return Fate::kPass; };
  std::atomic<int> requests_ = 0;
  std::vector<std::pair<std::string, std::string>> lost_;
  std::thread thread_;
};

std::vector<Change> small(const std::string& value) { return {{.key = "x", .value = value}}; }

// More than one of etcd's transactions holds.
std::vector<Change> large(const std::string& value) {
  std::vector<Change> changes = small(value);
  for (int i = 0; i < 249; ++i) changes.push_back({.key = fmt::format("k{:03}", i), .value = value});
  return changes;
}

Content content_of(const std::vector<Change>& changes) {
  Content found;
  for (const Change& change : changes) found.emplace(change.key, *change.value);
  return found;
}

class EtcdStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (EtcdServer::program().empty()) GTEST_SKIP() << "needs the program etcd (Debian: etcd-server)";
    auto server = EtcdServer::start();
    ASSERT_TRUE(server.ok()) << server.error().message();
    server_ = std::move(*server);
    relay_ = std::make_unique<Relay>(server_->url());
  }

  // A lease so long that no busy machine outlasts it; leads are ended by depose().
  [[nodiscard]] static std::unique_ptr<EtcdStore> open(const std::vector<std::string>& urls,
                                                       const std::string& run = kRun) {
    auto store = EtcdStore::create({.urls = urls,
                                    .run = run,
                                    .lease = from_seconds(60),
                                    .connect_timeout = from_seconds(10),
                                    .reply_timeout = from_seconds(20)});
    CHECK(store.ok(), store.error().message());
    return std::move(*store);
  }
  // The content as the next leader finds it; the leader before is deposed.
  [[nodiscard]] Content found_by_successor(const std::string& run = kRun) const {
    server_->depose(run);
    const auto store = open({server_->url()}, run);
    const auto won = store->campaign({});
    EXPECT_TRUE(won.ok() && *won);
    const Content found = content(*store);
    EXPECT_TRUE(store->resign().ok());
    EXPECT_THAT(server_->keys(run), Not(::testing::Contains(HasSubstr("redo/"))));
    return found;
  }

  std::unique_ptr<EtcdServer> server_;
  std::unique_ptr<Relay> relay_;
};

// A leader is cut off from any request on, before or after etcd has seen that one. Its successor finds every
// batch that was answered, the one in doubt whole or not at all, and no other.
TEST_F(EtcdStoreTest, CutOffAtEveryRequest) {
  const std::vector<std::vector<Change>> batches = {small("1"), large("2"), small("3")};
  std::vector<Content> states = {Content{}};
  for (const auto& batch : batches) {
    Content next = content_of(batch);
    next.merge(Content(states.back()));
    states.push_back(next);
  }
  int whole_run = 1;
  for (int k = 0; k <= whole_run; ++k) {
    for (const Fate fate : {Fate::kLose, Fate::kLoseAnswer}) {
      SCOPED_TRACE(fmt::format("request {}, {}", k, fate == Fate::kLose ? "lost" : "answer lost"));
      const std::string run = fmt::format("run-{}-{}", k, static_cast<int>(fate));
      relay_->follow([&](int request) {
        return request < k ? Fate::kPass : request == k ? fate : Fate::kLose;
      });
      if (k == 0) relay_->follow([](int) { return Fate::kPass; });  // a rehearsal, to count
      const auto store = open({relay_->url()}, run);
      const auto won = store->campaign({});
      std::size_t answered = 0;
      if (won.ok() && *won) {
        while (answered < batches.size() && store->commit(batches[answered]).ok()) ++answered;
      }
      if (k == 0) whole_run = relay_->requests();
      const Content found = found_by_successor(run);
      const Content& or_next = states[std::min(answered + 1, batches.size())];
      EXPECT_TRUE(found == states[answered] || found == or_next) << "answered " << answered;
    }
  }
  EXPECT_GT(whole_run, 10);
}

// Where a single answer is lost, the second address settles it: every call succeeds and counts once.
TEST_F(EtcdStoreTest, SecondAddressSettlesLostAnswers) {
  const auto work = [&](const std::string& run) {
    const auto store = open({relay_->url(), server_->url()}, run);
    const auto won = store->campaign({});
    ASSERT_TRUE(won.ok()) << won.error().message();
    ASSERT_EQ(*won, Generation(1));
    for (const auto& batch : {small("1"), large("2"), small("3")}) {
      const auto done = store->commit(batch);
      ASSERT_TRUE(done.ok()) << done.error().message();
    }
    Content expected = content_of(large("2"));
    expected["x"] = "3";
    EXPECT_EQ(content(*store), expected);
  };
  relay_->follow([](int) { return Fate::kPass; });
  work("rehearsal");
  const int whole_run = relay_->requests();
  for (int k = 0; k < whole_run; ++k) {
    for (const Fate fate : {Fate::kLose, Fate::kLoseAnswer}) {
      SCOPED_TRACE(fmt::format("request {}, {}", k, fate == Fate::kLose ? "lost" : "answer lost"));
      relay_->follow([&](int request) { return request == k ? fate : Fate::kPass; });
      ASSERT_NO_FATAL_FAILURE(work(fmt::format("run-{}-{}", k, static_cast<int>(fate))));
    }
  }
}

// With one address a lost answer is an error; the same commit, tried again, succeeds, and counts once.
TEST_F(EtcdStoreTest, TryingAgain) {
  for (const Fate fate : {Fate::kLose, Fate::kLoseAnswer}) {
    for (int k = 0; k < 8; ++k) {
      const std::string run = fmt::format("run-{}-{}", k, static_cast<int>(fate));
      relay_->follow([](int) { return Fate::kPass; });
      const auto store = open({relay_->url()}, run);
      ASSERT_TRUE(*store->campaign({}));
      ASSERT_TRUE(store->commit(large("0")).ok());
      relay_->follow([&](int request) { return request == k ? fate : Fate::kPass; });
      const auto failed = store->commit(large("1"));
      ASSERT_FALSE(failed.ok()) << run;
      EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
      EXPECT_THAT(failed.error().message(), HasSubstr("etcd does not answer: got status 503"));
      ASSERT_TRUE(store->commit(large("1")).ok()) << run;
      ASSERT_TRUE(store->commit(small("2")).ok()) << run;
      Content expected = content_of(large("1"));
      expected["x"] = "2";
      EXPECT_EQ(content(*store), expected) << run;
      EXPECT_EQ(found_by_successor(run), expected) << run;
    }
  }
}

// A caller goes on with other changes after a failed commit. That one is carried out wholly or not at all,
// with the newer changes on top of it, now and for the next leader.
TEST_F(EtcdStoreTest, GoingOnAfterFailure) {
  for (const auto& [batch, requests] : {std::pair(small("1"), 1), std::pair(large("1"), 9)}) {
    for (int k = 0; k < 2 * requests; ++k) {
      const Fate fate = k % 2 == 0 ? Fate::kLose : Fate::kLoseAnswer;
      const std::string run = fmt::format("run-{}-{}", requests, k);
      relay_->follow([](int) { return Fate::kPass; });
      const auto store = open({relay_->url()}, run);
      ASSERT_TRUE(*store->campaign({}));
      ASSERT_TRUE(store->commit(large("0")).ok());
      relay_->follow([&](int request) { return request == k / 2 ? fate : Fate::kPass; });
      ASSERT_FALSE(store->commit(batch).ok()) << run;
      ASSERT_TRUE(store->commit(small("2")).ok()) << run;
      Content without = content_of(large("0"));
      Content with = content_of(batch);
      with.merge(Content(without));
      without["x"] = with["x"] = "2";
      const Content found = content(*store);
      EXPECT_TRUE(found == without || found == with) << run;
      EXPECT_EQ(found_by_successor(run), found) << run;
    }
  }
}

// A request that was given up for lost and arrives later than newer ones changes nothing: not a commit, and
// not a campaign.
TEST_F(EtcdStoreTest, LateRequestsChangeNothing) {
  relay_->follow([](int request) { return request == 3 ? Fate::kLose : Fate::kPass; });
  const auto late_campaign = open({relay_->url()});
  EXPECT_FALSE(late_campaign->campaign({.name = "late", .address = ""}).ok());
  const auto store = open({relay_->url()});
  ASSERT_TRUE(*store->campaign({.name = "store", .address = ""}));
  relay_->deliver_lost();
  EXPECT_EQ((*store->leader())->candidate.name, "store");

  for (const auto& batch : {small("1"), large("1")}) {
    relay_->follow([](int request) { return request == 0 ? Fate::kLose : Fate::kPass; });
    EXPECT_FALSE(store->commit(batch).ok());
    ASSERT_TRUE(store->commit(batch).ok());
    ASSERT_TRUE(store->commit(small("2")).ok());
    const Content before = content(*store);
    relay_->deliver_lost();
    ASSERT_EQ(content(*store), before);
    // Also where the caller went on with something else.
    relay_->follow([](int request) { return request == 0 ? Fate::kLose : Fate::kPass; });
    EXPECT_FALSE(store->commit(batch).ok());
    ASSERT_TRUE(store->commit(small("3")).ok());
    relay_->deliver_lost();
    ASSERT_EQ(content(*store).at("x"), "3");
  }
  EXPECT_EQ(found_by_successor().at("x"), "3");
}

// Dead addresses are passed over. With none alive the error names all of them. A stopped server is an error
// no later than the sum of the timeouts.
TEST_F(EtcdStoreTest, Addresses) {
  const auto store = open({"http://127.0.0.1:1", server_->url()});
  ASSERT_TRUE(*store->campaign({}));
  EXPECT_TRUE(store->commit(small("1")).ok());
  const auto nowhere = open({"http://127.0.0.1:1", "http://127.0.0.1:2"})->campaign({});
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().where, "http://127.0.0.1:1, http://127.0.0.1:2");
  EXPECT_THAT(nowhere.error().message(), HasSubstr("etcd does not answer: got Connection, Connection"));

  auto patient =
      EtcdStore::create({.urls = {server_->url()}, .run = kRun, .reply_timeout = from_milliseconds(200)});
  ASSERT_TRUE(patient.ok());
  server_->freeze();
  const PosixClock clock;
  const Instant start = clock.now();
  const auto stopped = (*patient)->leader();
  const Duration waited = clock.now() - start;
  server_->thaw();
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().message(), HasSubstr("etcd does not answer: got Read"));
  EXPECT_LT(waited, from_seconds(5));
}

// Options out of range are refused before anything is sent.
TEST_F(EtcdStoreTest, Options) {
  const auto refused = [](const EtcdOptions& options, const std::string& part) {
    const auto store = EtcdStore::create(options);
    ASSERT_FALSE(store.ok()) << part;
    EXPECT_EQ(store.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(store.error().message(), HasSubstr(part));
    EXPECT_THAT(store.error().fix, Not(IsEmpty()));
  };
  refused({.urls = {"http://127.0.0.1:1"}, .run = ""}, "run id: cannot be part of a key: got ''");
  refused({.urls = {"http://127.0.0.1:1"}, .run = "a/b"}, "got 'a/b'");
  refused({.urls = {}, .run = "a"}, "address of etcd: there is none");
  const std::string good = "http://127.0.0.1:1";
  for (const char* url : {"", "a:1", "http://127.0.0.1:1/path", "http://", "http://127.0.0.1", "ftp://a:1",
                          "http://127.0.0.1@a:1", "https://a:1#b"}) {
    refused({.urls = {good, url}, .run = "a"}, fmt::format("got '{}'; expected https://HOST:PORT", url));
  }
  // Without encryption this machine alone is reached, and over TLS nobody is asked without a password.
  for (const char* url :
       {"http://a:1", "http://10.0.0.1:1", "http://127.0.0.1.a:1", "http://[2001:db8::1]:1"}) {
    refused({.urls = {good, url}, .run = "a", .access = {.name = "n", .password = "p"}}, "over TLS alone");
  }
  refused({.urls = {"https://a:1"}, .run = "a"}, "a name and a password");
  for (const char* url : {"http://localhost:1", "http://[::1]:1", "http://127.3.2.1:1"}) {
    EXPECT_TRUE(EtcdStore::create({.urls = {url}, .run = "a"}).ok()) << url;
  }
  EXPECT_TRUE(EtcdStore::create({.urls = {"https://a:1"}, .run = "a", .access = {.name = "n"}}).ok());
}

// State of a newer format is refused and left alone; so is a redo log that is cut short, or whose
// size cannot be read.
TEST_F(EtcdStoreTest, ForeignState) {
  const auto set = [this](const std::string& key, const std::string& value) {
    static_cast<void>(server_->ask(
        "/v3/kv/put",
        {{"key", etcd::to_base64(std::string("gossamer/run/") + key)}, {"value", etcd::to_base64(value)}}));
  };
  for (const char* foreign :
       {"", "7", R"({"format":2,"generation":7})", R"({"format":1,"generation":"7"})"}) {
    set("generation", foreign);
    const auto refused = open({server_->url()})->campaign({});
    ASSERT_FALSE(refused.ok()) << foreign;
    EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr(fmt::format("got '{}'; expected format 1", foreign)));
  }
  EXPECT_THAT(server_->keys(kRun), ::testing::ElementsAre("generation"));
  set("generation", R"({"format":1,"generation":7})");
  set("redo/commit", "1000");
  set("redo/chunk/000000", "short");
  const auto damaged = open({server_->url()})->campaign({});
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().kind, ErrorKind::kBadData);
  EXPECT_THAT(damaged.error().message(), HasSubstr("the redo log of a large commit is damaged"));
  EXPECT_FALSE(*open({server_->url()})->leader());  // the lead was given back
  // A size that is none says nothing about the pieces: they may be a whole commit.
  for (const char* size : {"x", "", "0", "5 ", "-1", "99999999999999999999999"}) {
    SCOPED_TRACE(size);
    set("redo/commit", size);
    const auto unreadable = open({server_->url()})->campaign({});
    ASSERT_FALSE(unreadable.ok());
    EXPECT_EQ(unreadable.error().kind, ErrorKind::kBadData);
    EXPECT_THAT(unreadable.error().message(),
                HasSubstr(fmt::format("got redo/commit '{}'", size).substr(0, 40)));
    EXPECT_THAT(server_->keys(kRun), ::testing::IsSupersetOf({"redo/chunk/000000", "redo/commit"}));
  }
}

// Runs in one etcd do not see each other, also where one id begins with the other.
TEST_F(EtcdStoreTest, RunsAreApart) {
  const auto a = open({server_->url()}, "a");
  const auto ab = open({server_->url()}, "ab");
  ASSERT_TRUE(*a->campaign({}));
  ASSERT_TRUE(*ab->campaign({}));
  ASSERT_TRUE(a->commit(small("a")).ok());
  ASSERT_TRUE(ab->commit(small("ab")).ok());
  EXPECT_EQ(content(*a), (Content{{"x", "a"}}));
  EXPECT_EQ(content(*ab), (Content{{"x", "ab"}}));
}

// Round trips, as docs/protocols/store.md says them.
TEST_F(EtcdStoreTest, RoundTrips) {
  relay_->follow([](int) { return Fate::kPass; });
  const auto store = open({relay_->url()});
  const auto count = [this](const std::function<bool()>& call) {
    const int before = relay_->requests();
    EXPECT_TRUE(call());
    return relay_->requests() - before;
  };
  EXPECT_EQ(count([&] { return store->campaign({}).ok(); }), 5);
  EXPECT_EQ(count([&] { return store->keep().ok(); }), 1);
  EXPECT_EQ(count([&] { return store->leader().ok(); }), 1);
  EXPECT_EQ(count([&] { return store->commit(small("1")).ok(); }), 1);
  EXPECT_EQ(count([&] { return store->commit(large("1")).ok(); }), 9);
  EXPECT_EQ(count([&] { return store->resign().ok(); }), 1);
}

// Base64 of all lengths and bytes comes back; what is none is recognised.
TEST(EtcdRequests, Base64) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(etcd::from_base64(etcd::to_base64(bytes)), bytes) << i;
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(etcd::to_base64("gossamer"), "Z29zc2FtZXI=");
  for (const char* bad : {"a", "ab", "abc", "abcde", "ab!d", "ab\xff="}) {
    EXPECT_EQ(etcd::from_base64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace gossamer::host
