// SPDX-License-Identifier: Apache-2.0
//
// What the doctor says of clocks, over real gRPC with TLS. OpenSSL looks at this machine's clock, which a
// test cannot set. So the certificates and the coordinator's clock are at another time here.
#include "commands/coordinator_doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster/admission/token.h"
#include "cluster/admission/token_book.h"
#include "host/grpc/certificates.h"
#include "host/grpc/network.h"
#include "host/posix/clock.h"
#include "node/admission/credentials.h"
#include "node/questions.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

constexpr double kDay = 24 * 3600;

class CoordinatorDoctor : public ::testing::Test {
 protected:
  void SetUp() override { (void)std::signal(SIGPIPE, SIG_IGN); }

  // Serves a run. Its certificates were made some days ago, for some days, by a clock that is ahead of this
  // machine's. Without a clock, Clock is not answered.
  struct Run {
    double made_days_ago = 0;
    int days = 2;
    std::optional<double> ahead = 0.0;
  };
  void serve(const Run& run) {
    ASSERT_TRUE(machine_.disk.remove_all("run").ok());  // remove the run of an earlier call
    const auto own = node::create_run_credentials(
        machine_.disk, "run", "run",
        {.now_seconds = clock_.wall_seconds() - run.made_days_ago * kDay, .days = run.days});
    authority_ = (*own).authority.certificate;
    network_ = host::make_grpc_network((*own).own.credentials,
                                       [this, ahead = run.ahead](const host::NetworkEvent& event) {
                                         const auto* const asked = std::get_if<host::Asked>(&event);
                                         if (asked == nullptr) return;
                                         Result<std::string> answer = Error{.what = "unknown question"};
                                         if (ahead && asked->method == node::kClockMethod)
                                           answer = node::clock_answer(clock_.wall_seconds() + *ahead);
                                         network_->answer(asked->question, std::move(answer));
                                       });
    at_ = *network_->listen({"127.0.0.1", 0}, host::Lane::kControl);
  }

  // The findings, by name.
  std::map<std::string, Finding> examine(const node::Asker& asker = {}) {
    const run::NodeHost simulated = machine_.host();
    const run::NodeHost host{.disk = simulated.disk,
                             .clock = clock_,
                             .compute = simulated.compute,
                             .kernels = simulated.kernels,
                             .console = simulated.console};
    std::map<std::string, Finding> named;
    for (Finding& one : examine_coordinator(host, at_, asker, "program"))
      named.emplace(std::string(one.name), std::move(one));
    return named;
  }
  // A token of the run that is served. Nothing looks at it.
  [[nodiscard]] std::string token() const {
    return cluster::encode_token({.at = at_,
                                  .id = std::string(2 * cluster::kTokenIdBytes, '0'),
                                  .secret = std::string(cluster::kSecretBytes, '0'),
                                  .authority = *host::fingerprint(authority_)});
  }
  // A time this far from now, as it is shown. It is cut to the day, so that a
  // second that passes changes nothing.
  [[nodiscard]] std::string day(double from_now) const {
    return cluster::utc_text(static_cast<std::int64_t>(clock_.wall_seconds() + from_now)).substr(0, 10);
  }

  host::PosixClock clock_;
  run::testing::SimMachine machine_;
  std::unique_ptr<host::Network> network_;
  host::Endpoint at_;
  std::string authority_;  // PEM
};

// A clock before the certificates' beginning, or after their end, is found. Both times are named, and
// nothing is looked at that needs TLS.
TEST_F(CoordinatorDoctor, ClockOutsideTheCertificates) {
  for (const double days : {-30.0, 30.0}) {
    serve({.made_days_ago = days, .days = 2, .ahead = -days * kDay});
    const auto found = examine({.token = token()});
    EXPECT_EQ(found.at("run").health, Health::kGood);
    const Finding& clocks = found.at("clocks");
    EXPECT_EQ(clocks.health, Health::kBad);
    EXPECT_THAT(clocks.found, HasSubstr(day(0)));
    EXPECT_THAT(clocks.found, HasSubstr(day(-days * kDay)));
    EXPECT_THAT(clocks.found, HasSubstr(days > 0 ? "behind" : "ahead"));
    EXPECT_THAT(clocks.found, HasSubstr("certificate holds from " + day((-days - 1) * kDay)));
    EXPECT_THAT(clocks.advice, HasSubstr("clock"));
    EXPECT_FALSE(found.contains("token"));
  }
}

// The same holds where the server does not tell its time. The certificates' own times are named.
TEST_F(CoordinatorDoctor, NoOtherClock) {
  serve({.made_days_ago = -30, .ahead = std::nullopt});
  auto found = examine();
  EXPECT_EQ(found.at("clocks").health, Health::kBad);
  EXPECT_THAT(found.at("clocks").found, HasSubstr(day(0)));
  EXPECT_THAT(found.at("clocks").found, HasSubstr(day(29 * kDay)));

  serve({.ahead = std::nullopt});
  EXPECT_EQ(examine().at("clocks").health, Health::kAdvice);
}

// A clock that is hours off, with certificates that hold, is named too, for a stranger without a token. A
// clock that is seconds off is advice, and one that agrees is good.
TEST_F(CoordinatorDoctor, ClockIsOff) {
  struct Case {
    double ahead;
    Health health;
    const char* words;
  };
  for (const Case& one :
       {Case{3 * 3600, Health::kBad, "3.0 hours ahead"}, Case{-3 * 3600, Health::kBad, "behind"},
        Case{30, Health::kAdvice, " s ahead"}, Case{0, Health::kGood, "agree"}}) {
    serve({.ahead = one.ahead});
    const auto found = examine();
    EXPECT_EQ(found.at("clocks").health, one.health) << one.ahead;
    EXPECT_THAT(found.at("clocks").found, HasSubstr(one.words));
    EXPECT_EQ(found.at("clocks").advice.empty(), one.health == Health::kGood);
    EXPECT_EQ(found.at("token").health, Health::kAdvice);  // no token to try: it came this far
  }
}

// Certificates are blamed when the clocks agree on a time at which they do not hold any more.
TEST_F(CoordinatorDoctor, CertificatesAreOutdated) {
  serve({.made_days_ago = 30});
  const auto found = examine();
  EXPECT_EQ(found.at("clocks").health, Health::kGood);
  EXPECT_EQ(found.at("certificate").health, Health::kBad);
  EXPECT_THAT(found.at("certificate").found, HasSubstr(day(-28 * kDay)));
}

}  // namespace
}  // namespace gossamer::commands
