// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/sparse_chaos.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "host/sim/disk.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "simulation/misconduct.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/sparse_measuring.h"
#include "simulation/sparse/sparse_shape.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kOutsideLookEvery{50'000'000};
// Beyond so many times its limit, a distance is no rounding. Below it, learners that begin slightly off show
// whether it is.
constexpr double kMostTimesRounding = 20;
// So often a run of slow machines gets its time again.
constexpr std::uint64_t kMostTimesLonger = 3;

// State that outlives a fleet.
struct History {
  std::unique_ptr<host::SimDisk> disk;
  std::set<StepNumber> fresh;  // steps that began after all before them
  AppliedFound found;
  ProbeCounts<sparse_engine::FleetProbe> probes;
};

std::string words_of_negatives(const std::optional<sparse::HashNegativeOptions>& hashed) {
  if (!hashed) return "";
  return fmt::format(", {} hash tables from step {} on, {} samples find {} rows{}", hashed->tables,
                     hashed->first_step, hashed->queries, hashed->found,
                     hashed->sets == sparse::HashSets::kOwn ? " of their own" : "");
}

// Runs one fleet and watches it from outside.
class Run {
 public:
  // `history` outlives it.
  Run(const SparseChaosOptions& options, SparseShape shape, History& history)
      : options_(options),
        shape_(std::move(shape)),
        rng_(options.seed, Purpose::kFault, 14),
        history_(history),
        problem_(watched(shape_, history)),
        fleet_(problem_, measured(shape_.fleet)),
        misconduct_(*fleet_, options.seed, problem_.shape().shards()) {
    if (shape_.problem.test_records > 0) measuring_.emplace(problem_, *fleet_);
    std::erase_if(history_.fresh, [this](StepNumber step) { return step >= problem_.start(); });
    std::erase_if(history_.found.steps, [this](const auto& one) { return one.first >= problem_.start(); });
  }

  // Runs to the end of the run.
  SparseChaosReport run();
  // Runs until all machines lose power.
  SparseChaosReport run_for(Duration time);

 private:
  static TinyProblem::Options watched(const SparseShape& shape, History& history) {
    TinyProblem::Options problem = shape.problem;
    problem.probes = &history.probes;
    problem.fresh = &history.fresh;
    problem.found = &history.found;
    if (shape.power_off) problem.disk = history.disk.get();
    return problem;
  }
  [[nodiscard]] SparseFleet::Options measured(SparseFleet::Options fleet) {
    fleet.misbehave = [this](SimMember& member, const Fault& fault) { misbehave(member, fault); };
    fleet.falsify = [this](net::PeerId who, Slices& sent) { falsify(who, sent); };
    if (shape_.problem.test_records == 0) return fleet;
    fleet.others = [this](const net::Arrived& arrived) {
      if (measuring_) measuring_->on(arrived);
    };
    return fleet;
  }
  void misbehave(SimMember& member, const Fault& fault);
  void falsify(net::PeerId who, Slices& sent);
  void say_shape() const;
  void look_for_standstill();
  [[nodiscard]] SparseChaosReport told();
  void look();
  void shake();
  // Why the run is not yet at its goal.
  [[nodiscard]] std::uint64_t committed() { return fleet_->invariants().committed_step().value; }
  [[nodiscard]] std::optional<std::string> unfinished();
  // Starts the faults, and returns the end of the last one.
  Instant begin();
  // Whether the run has failed, rightly or not.
  bool judge_failure();
  void judge();
  void judge_weights();
  void judge_ranks(sparse::Network alone);
  void broke(std::string what) { fleet_->invariants().broke(std::move(what)); }

  const SparseChaosOptions& options_;
  SparseShape shape_;
  Rng rng_;
  StepNumber last_step_;
  Instant last_step_at_;
  Duration longest_standstill_;
  History& history_;
  const TinyProblem problem_;
  SparseFleet fleet_;
  Misconduct misconduct_;
  std::map<Incarnation, Instant> liars_;      // lives that send wrong values, and until when
  std::optional<SparseMeasuring> measuring_;  // nothing: the run has no test records
  Epoch shaken_;
  std::optional<Instant> last_aftershock_;
  SparseChaosReport report_;
};

// Looks, every kOutsideLookEvery, at facts that only an outside view has.
void Run::look() {
  fleet_->replace_done();
  shake();
  fleet_->timeline().after(kOutsideLookEvery, [this] { look(); });
}

// Kills a member shortly after a change of the view, so that a recovery is struck by the next death.
void Run::shake() {
  const Epoch installed = fleet_->durable().installed();
  if (installed == shaken_ || shape_.aftershocks.empty()) return;
  const bool first = shaken_ == Epoch();
  shaken_ = installed;
  if (first || rng_.below(2) == 0) return;
  const Duration after = shape_.aftershocks.back();
  shape_.aftershocks.pop_back();
  const Fault fault{.kind = FaultKind::kKill,
                    .at = fleet_->timeline().now() + after,
                    .lasts = from_seconds(2 * static_cast<double>(rng_.uniform())),
                    .member = rng_.next_u64(),
                    .other = 0};
  fleet_->timeline().after(after, [this, fault] {
    last_aftershock_ = fault.at;
    fleet_->inject(fault);
  });
}

// A hostile member speaks nonsense, or gives values that none can have. Where few judge it, nobody fences it
// for these. So it ends.
void Run::misbehave(SimMember& member, const Fault& fault) {
  if (fault.other % 3 != 0) return misconduct_.begin(member, fault);
  if (!member.paused() && member.life())
    liars_[*member.life()] =
        fleet_->timeline().now() + from_seconds(0.2 + 2 * static_cast<double>(rng_.uniform()));
}

// Numbers of these bytes are none, wherever they begin. Anything else might be taken for right.
void Run::falsify(net::PeerId who, Slices& sent) {
  const auto lies = liars_.find(who.incarnation);
  if (lies == liars_.end() || lies->second < fleet_->timeline().now()) return;
  sent = {Slice::of(std::string(total_bytes(sent), '\xff'))};
}

void Run::judge_weights() {
  if (!history_.found.disputed.empty())
    broke(fmt::format("members have applied step {} with different rows that hash tables had found",
                      history_.found.disputed.begin()->value));
  sparse::Network alone = problem_.train_alone(history_.fresh, &history_.found);
  report_.relative_weight_error = fleet_.distance_to(alone);
  if (const auto what = fleet_.other_last_step(alone)) broke(*what);
  const double most = options_.most_error > 0 ? options_.most_error : most_error_of(shape_.problem.codec);
  // NaN is further away than any limit.
  const bool exact = shape_.problem.codec == net::Codec::kF32 && options_.most_error == 0;
  const bool sane = exact && report_.relative_weight_error <= kMostTimesRounding * most;
  if (!(report_.relative_weight_error <= most) &&
      (!sane || !SparseFleet::rounding_takes(problem_, {.fresh = history_.fresh, .found = &history_.found},
                                             alone, report_.relative_weight_error))) {
    return broke(
        fmt::format("all weights together are {:.3g} from those of one learner, at most {:.3g} is rounding",
                    report_.relative_weight_error, most));
  }
  if (shape_.problem.codec == net::Codec::kF32) judge_ranks(std::move(alone));
}

// Compares the ranks that the lead has measured with those of one process. Rounding may move one in a
// hundred.
void Run::judge_ranks(sparse::Network alone) {
  if (!measuring_ || !measuring_->ranks()) return;
  const std::vector<std::uint32_t>& ranks = *measuring_->ranks();
  const std::vector<std::uint32_t> want = problem_.ranks_alone(std::move(alone));
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::min(ranks.size(), want.size()); ++i) same += ranks[i] == want[i] ? 1 : 0;
  if (ranks.size() == want.size() && 100 * same >= 99 * want.size()) return;
  broke(fmt::format("the lead measures {} ranks of true labels, {} of which are those of one process, of {}",
                    ranks.size(), same, want.size()));
}

std::optional<std::string> Run::unfinished() {
  const StepNumber committed = fleet_->invariants().committed_step();
  if (committed.value < problem_.steps()) return fmt::format("{} steps are committed", committed.value);
  if (auto why = fleet_.unfinished()) return why;
  const bool measured =
      !measuring_ || (measuring_->ranks() && measuring_->epoch() == fleet_->durable().begun());
  return measured ? std::nullopt : std::optional<std::string>("the lead has not measured what is trained");
}

bool Run::judge_failure() {
  if (fleet_->invariants().violation()) return true;
  const auto failed = fleet_->failure();
  const bool gave_up = fleet_->leader() != nullptr && fleet_->leader()->failure();
  report_.lost = gave_up && fleet_.may_have_lost();
  if (!report_.lost && failed) broke(*failed);
  if (report_.lost && options_.nothing_lost) broke("nothing was to be lost: " + *failed);
  return report_.lost || failed;
}

void Run::judge() {
  if (judge_failure()) return;
  if (const auto who = misconduct_.harboured()) return broke("at the end " + *who);
  if (const auto why = unfinished()) return broke("long after the last fault " + *why);
  if (longest_standstill_ > options_.longest_standstill)
    return broke(fmt::format("no step was committed for {:.2f} s", longest_standstill_.seconds()));
  judge_weights();
}

void Run::say_shape() const {
  if (!options_.trace) return;
  const TinyProblem::Options& problem = shape_.problem;
  options_.trace(
      0, "seed",
      fmt::format(
          "{} members, {} copies; {} columns, {} dense layers; {} steps, staleness {}, a snapshot every "
          "{}{}{}{}{}",
          shape_.fleet.first_members, shape_.fleet.copies, problem.hidden, problem.dense.size(),
          problem.steps, problem.staleness, problem.snapshot_every,
          problem.codec == net::Codec::kF32 ? "" : fmt::format(", exchanged in {}", net::name(problem.codec)),
          problem.exchange == sparse_engine::ExchangeKind::kDslide ? ", all outputs exchanged" : "",
          words_of_negatives(problem.hashed),
          problem.test_records > 0 ? fmt::format(", measured on {} records", problem.test_records) : ""));
}

Instant Run::begin() {
  say_shape();
  Instant last_end;
  for (const Fault& fault : shape_.faults) {
    last_end = std::max(last_end, fault.at + fault.lasts);
    fleet_->timeline().at(fault.at, [this, fault] { fleet_->inject(fault); });
  }
  look();
  return last_end;
}

SparseChaosReport Run::run_for(Duration time) {
  begin();
  while (fleet_->timeline().now() < Instant{} + time && !fleet_->failure()) fleet_->run_for(0.01);
  judge_failure();
  return told();
}

SparseChaosReport Run::run() {
  const Instant last_end = begin();
  Instant end = last_end + options_.calm;
  bool waits = false;
  std::uint64_t times = 0;  // no more than there were faults: else members end by themselves
  // The run need not stand idle until then.
  // A hostile life has time to be fenced, too.
  const auto over = [&] {
    return fleet_->failure() ||
           (fleet_->timeline().now() >= last_end && !unfinished() && !misconduct_.harboured());
  };
  std::uint64_t late = 0;  // steps committed after two thirds of the calm
  std::uint64_t longer = kMostTimesLonger;
  while (!over()) {
    if (fleet_->timeline().now() >= end) {
      // Machines may be slow. A run that takes steps to the last moment, and would end in time, is not stuck.
      const std::uint64_t since = committed() - std::min(late, committed());
      if (longer == 0 || problem_.steps() > committed() + 3 * since * longer) break;
      --longer;
      end = end + options_.calm;
    }
    fleet_->run_for(0.01);
    look_for_standstill();
    // The run may stand still until the dead are given up.
    const bool before = waits;
    if (fleet_->leader() != nullptr) waits = fleet_->abandoned() || fleet_->waits_for_dead();
    if (waits && !before && ++times <= fleet_->faults_injected()) end = end + kSurelyGivenUp;
    // A member that an aftershock kills meanwhile is given up so long after it.
    if (waits && last_aftershock_) end = std::max(end, *last_aftershock_ + kSurelyGivenUp + options_.calm);
    if (const Instant then{end.ns - options_.calm.ns / 3}; fleet_->timeline().now() < then)
      late = committed();
  }
  judge();
  return told();
}

void Run::look_for_standstill() {
  const StepNumber committed = fleet_->invariants().committed_step();
  const Instant now = fleet_->timeline().now();
  if (std::exchange(last_step_, committed) != committed || committed == StepNumber() ||
      committed.value >= problem_.steps())
    last_step_at_ = now;
  longest_standstill_ = std::max(longest_standstill_, now - last_step_at_);
}

SparseChaosReport Run::told() {
  report_.violation = fleet_->invariants().violation();
  report_.codec = shape_.problem.codec;
  report_.state_hash = fleet_->invariants().hash();
  report_.frames_hash = fleet_->internet().frames_hash();
  report_.events = fleet_->timeline().events_run();
  report_.faults_injected = fleet_->faults_injected();
  report_.steps_committed = fleet_->invariants().committed_step().value;
  report_.lives = fleet_->lives();
  report_.evaluations = measuring_ ? measuring_->ended() : 0;
  report_.steps_saved = problem_.start().value;
  report_.virtual_seconds = (fleet_->timeline().now() - Instant{}).seconds();
  return report_;
}

void add(SparseChaosReport& report, const SparseChaosReport& earlier) {
  // A change of either hash changes the sum.
  report.state_hash ^= std::rotl(earlier.state_hash, 1);
  report.frames_hash ^= std::rotl(earlier.frames_hash, 1);
  report.events += earlier.events;
  report.faults_injected += earlier.faults_injected;
  report.lives += earlier.lives;
  report.virtual_seconds += earlier.virtual_seconds;
}

}  // namespace

SparseChaosReport run_sparse_chaos(const SparseChaosOptions& options) {
  History history{.disk = std::make_unique<host::SimDisk>(host::SimDiskOptions{.seed = options.seed}),
                  .fresh = {},
                  .found = {},
                  .probes = {}};
  SparseShape shape = sparse_shape_of(options);
  std::optional<SparseChaosReport> earlier;
  if (shape.power_off) {
    earlier = Run(options, shape, history).run_for(shape.power_off->after);
    earlier->probes = history.probes;
    if (earlier->violation) return *earlier;
    history.disk = history.disk->after_crash();
    shape.fleet.first_members = shape.power_off->members;
    shape.problem.shard_shift = shape.power_off->shard_shift;
    if (options.trace) options.trace(shape.power_off->after.seconds(), "power", "goes everywhere");
  }
  SparseChaosReport report = Run(options, shape, history).run();
  if (earlier) add(report, *earlier);
  report.probes = history.probes;
  return report;
}

}  // namespace gossamer::simulation
