// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_lead.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "cluster/control/coordinator.h"
#include "commands/engine/loss_watch.h"
#include "commands/run/lead_companion.h"
#include "host/api/durable_directories.h"
#include "host/api/files.h"
#include "node/admission/credentials.h"
#include "node/companion.h"
#include "node/event_loop.h"
#include "node/places.h"
#include "node/run_configuration.h"
#include "run/engine_key.h"
#include "run/run_directory.h"

namespace gossamer::commands {
namespace {

// With shards for so many members each has an even part of the work. The number must not depend on the
// members that come.
constexpr std::size_t kMembersInMind = 16;
// How long own members may take to leave, because they may have much to write.
constexpr Duration kLeaveTime{120'000'000'000};
// How long their processes may take to end after that.
constexpr Duration kEndTime{10'000'000'000};

std::string nodes_directory(const std::string& run) { return run + "/nodes"; }
std::string ended_file(const std::string& run) { return nodes_directory(run) + "/ended"; }

// The step that an older version's fleet began with. It is in a file of its own.
Result<StepNumber> old_start(host::Disk& disk, const std::string& run) {
  const std::string path = nodes_directory(run) + "/start";
  const auto there = disk.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return StepNumber();
  const auto text = host::read_text(disk, path);
  if (!text.ok()) return text.error();
  StepNumber start;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), start.value);
  if (error == std::errc() && std::string_view(end) == "\n") return start;
  return Error{.kind = ErrorKind::kBadData,
               .where = path,
               .what = "cannot read the step that the run begins with",
               .got = *text,
               .expected = "a number",
               .fix = "resume the run with gossamer train --resume"};
}

Error not_stored(const Error& why) {
  return {.kind = why.kind,
          .where = why.where,
          .what = "the run is to end, and what its nodes have saved cannot be stored",
          .got = why.got.empty() ? why.what : why.got,
          .expected = why.expected,
          .fix =
              "make room, and start this again with --resume within ten minutes: the nodes keep what they "
              "have saved, and wait so long; after that the run goes on from the checkpoint before"};
}

// Own members get an authority of their own, and all certificates and tokens of before would be worth
// nothing.
Error would_lose_machines(const std::string& run) {
  return {.kind = ErrorKind::kUsage,
          .where = "--nodes",
          .what = "machines have joined this run, with certificates that --nodes would end",
          .got = "a run that 'gossamer coordinator' leads",
          .expected = "to lead it as before, or to train on in one process",
          .fix = fmt::format("gossamer coordinator --resume --out {}", run)};
}

// What a run had cost by the checkpoint that a fleet begins with.
tensors::CheckpointInfo began_with(const LedTraining& training, StepNumber start) {
  if (start == StepNumber()) return {};
  tensors::CheckpointInfo unknown;
  unknown.next_step = start;
  return training.checkpoint(start).value_or(unknown);
}

// Whether members have delivered a result that can be taken. A damaged one is none.
Result<bool> take_if_there(LedTraining& training, std::size_t members) {
  const auto there = training.delivered(members);
  if (there.ok() && !*there) return false;
  const Result<void> taken = there.ok() ? training.take_delivered() : Result<void>(there.error());
  if (taken.ok()) return true;
  return taken.error().kind == ErrorKind::kBadData ? Result<bool>(false) : taken.error();
}

}  // namespace

std::size_t RunLead::members_in_mind() const { return options_.own ? options_.own->nodes : kMembersInMind; }

Result<RunLead::Before> RunLead::fleet_before() const {
  const std::string directory = node::lead_directory(paths_.root);
  auto file = run::read_lead_file(host_.disk, directory);
  if (!file.ok()) return file.error();
  if (!file->engine.empty() && file->engine != engine_)
    return run::other_engine(run::lead_file_path(directory), file->engine, engine_);
  const auto start = file->start ? Result<StepNumber>(*file->start) : old_start(host_.disk, paths_.root);
  if (!start.ok()) return start.error();
  const auto ended = host_.disk.exists(ended_file(paths_.root));
  if (!ended.ok()) return ended.error();
  const auto known = node::has_membership(host_.disk, directory);
  if (!known.ok()) return known.error();
  const bool from_anywhere = *known && file->nodes == 0;
  return Before{.file = *std::move(file),
                .start = *start,
                .goes_on = from_anywhere && !*ended && !options_.own,
                .has_authority = from_anywhere};
}

// The authority of a run whose members come from anywhere stays, with what it has promised: certificates,
// tokens, and the numbers in the store. Members of before join the next fleet with what they have.
Result<void> RunLead::begin_anew(const Before& before) {
  if (!before.has_authority || options_.own) return begin_from_nothing();
  if (auto noted = note_end(); !noted.ok()) return noted;
  remove_delivered(host_.disk, paths_);
  return host::make_durable_directories(host_.disk, paths_.parts());
}

// What nodes had in their directories goes at once, under another name. A half of it would look like a fleet
// that can be led on.
Result<void> RunLead::begin_from_nothing() {
  const std::string nodes = nodes_directory(paths_.root);
  const std::string old = nodes + ".old";
  const auto there = host_.disk.exists(nodes);
  if (!there.ok()) return there.error();
  if (auto removed = host_.disk.remove_all(old); !removed.ok()) return removed;
  if (*there) {
    if (auto moved = host_.disk.rename(nodes, old); !moved.ok()) return moved;
    if (auto synced = host_.disk.sync_directory(paths_.root); !synced.ok()) return synced;
    if (auto removed = host_.disk.remove_all(old); !removed.ok()) return removed;
  }
  return host::make_durable_directories(host_.disk, paths_.parts());
}

Result<DoneSteps> RunLead::train(const run::RunPaths& paths, LedTraining& training,
                                 const engine::TrainHooks& hooks) {
  paths_ = paths;
  const auto before = fleet_before();
  if (!before.ok()) return before.error();
  node::CoordinatorOptions options = options_.lead;
  options.resume = before->goes_on;
  if (before->goes_on) return lead_fleets(std::move(options), before->start, training, hooks);
  auto trained = trained_by_others(*before, training, hooks);
  if (!trained.ok()) return trained.error();
  if (trained->has_value()) return **std::move(trained);
  const auto start = training.find_start(hooks.events);
  if (!start.ok()) return start.error();
  if (start->trained) return take_trained(training, hooks);
  if (options_.own && before->has_authority) return would_lose_machines(paths_.root);
  tell_start(start->from, hooks);
  if (auto known = look_where_it_listens(options, *before); !known.ok()) return known.error();
  if (auto made = begin_anew(*before); !made.ok()) return made.error();
  if (before->has_authority && !options_.own) {
    options.resume = true;
    options.anew = start->from.next_step;
  }
  return lead_fleets(std::move(options), start->from.next_step, training, hooks);
}

Result<DoneSteps> RunLead::take_trained(LedTraining& training, const engine::TrainHooks& hooks) {
  auto done = training.take_trained(hooks);
  cost_.nodes = std::max<std::size_t>(1, training.parts());
  return done;
}

// Leads a fleet, and when no member of it is left the next one, from the newest checkpoint. What they cost is
// counted from the first one on.
Result<DoneSteps> RunLead::lead_fleets(node::CoordinatorOptions options, StepNumber start,
                                       LedTraining& training, const engine::TrainHooks& hooks) {
  first_ = {.at = host_.clock.now(), .from = began_with(training, start)};
  first_.from.cost = cost_by_checkpoints(host_.disk, paths_.checkpoints(), training);
  owners_ = std::make_unique<OwnerBook>(host_.disk, training, node::lead_directory(paths_.root) + "/owners");
  for (;;) {
    auto done = lead_from(options, start, training, hooks);
    if (!done.ok()) return done.error();
    if (done->has_value()) {
      (*done)->cost_before = first_.from.cost;
      (*done)->resumed_at = first_.from.next_step > StepNumber() ? std::optional(first_.from.next_step)
                                                                 : std::optional<StepNumber>();
      return **std::move(done);
    }
    const auto found = training.find_start(hooks.events);
    if (!found.ok()) return found.error();
    if (found->trained) return take_trained(training, hooks);
    start = found->from.next_step;
    if (auto made = begin_anew({.start = start, .has_authority = true}); !made.ok()) return made.error();
    const std::uint64_t lost = told_steps_ - std::min(told_steps_, start.value);
    if (unfinished_ && *unfinished_ > start) {
      host_.say(fmt::format("the run waits for members: those of before may bring what step {} lacks",
                            unfinished_->value));
    } else if (!owners_->unheard().empty()) {
      host_.say(
          fmt::format("the run waits for members: those of before may bring steps after {}", start.value));
    } else {
      host_.say(fmt::format("the run waits for members, and goes on at step {}{}", start.value,
                            lost > 0 ? fmt::format(", {} back", run::counted(lost, "step")) : ""));
    }
    hooks.events("waits_for_members", {{"step", start.value}, {"steps_lost", lost}});
    options.resume = true;
    options.anew = start;
    options.listen.reset();  // where it listens already
    options.first_members = options.file.first = 1;
  }
}

// Nothing: no member of this fleet is left, and the run goes on with another one.
Result<std::optional<DoneSteps>> RunLead::lead_from(const node::CoordinatorOptions& wanted, StepNumber start,
                                                    LedTraining& training, const engine::TrainHooks& hooks) {
  auto led =
      training.lead({.members = members_in_mind(), .one_machine = options_.own.has_value(), .start = start});
  if (!led.ok()) {
    // A fleet that is led on has lost the checkpoint that it began with. Without it no member can come.
    if (start == StepNumber() || training.checkpoint(start)) return led.error();
    host_.warn(led.error().message());
    return std::optional<DoneSteps>();
  }
  tensors::CheckpointInfo from = began_with(training, start);
  from.cost = first_.from.cost;
  FleetProgress progress(host_, paths_.root, training, hooks, std::move(from));
  progress.name_causes(
      [this](std::string cause) { return own_ != nullptr ? own_->as_seen(std::move(cause)) : cause; });
  progress.judge_by(*owners_);
  if (auto read = progress.read(); !read.ok()) return read.error();
  // An earlier process may have ended between the last delivery and the model. Members that are still
  // there are told of the end as usual.
  FleetWatch watch(host_, paths_, training, hooks, progress,
                   {.start = start,
                    .members = members_in_mind(),
                    .delivered = options_.own ? "" : paths_.parts(),
                    .owners = owners_.get(),
                    .began = first_.at});
  if (options_.own) watch.forget_unfinished();  // nobody comes back
  node::CoordinatorOptions options = wanted;
  options.steps = StepNumber(training.led_facts().steps);
  complete(options, *led, start);
  const auto ended = lead_on(std::move(options), *led, hooks, watch, progress);
  watch.look(FleetProgress::Until::kEnd);
  if (store_says_end_) static_cast<void>(note_end());  // else the next process finds an end at once
  if (watch.failure()) return *watch.failure();
  const bool trained = training.parts() > 0;
  if (!ended.ok() && !trained) return ended.error();
  if (ended.ok() && *ended == Ending::kGone && !trained) {
    progress.add_to(cost_);
    recoveries_.insert(recoveries_.end(), cost_.recoveries.begin(), cost_.recoveries.end());
    told_steps_ = progress.steps();
    unfinished_ = watch.unfinished_checkpoint();
    return std::optional<DoneSteps>();
  }
  const bool stopped = ended.ok() && *ended == Ending::kEnded && !trained;
  if (stopped && watch.newest_checkpoint().value < progress.steps())
    return progress.not_saved(watch.newest_checkpoint());
  if (trained) {
    if (auto taken = training.take_delivered(); !taken.ok()) return taken.error();
  }
  return std::optional(finish(training, progress, watch));
}

Result<std::optional<DoneSteps>> RunLead::trained_by_others(const Before& before, LedTraining& training,
                                                            const engine::TrainHooks& hooks) {
  using Found = std::optional<DoneSteps>;
  const auto there = host_.disk.exists(paths_.parts());
  if (!there.ok()) return there.error();
  if (!*there) return Found();
  const std::size_t members = before.file.nodes > 0 ? before.file.nodes : members_in_mind();
  const auto taken = take_if_there(training, members);
  if (!taken.ok()) return taken.error();
  if (!*taken) return Found();
  FleetProgress progress(host_, paths_.root, training, hooks, began_with(training, before.start));
  if (auto read = progress.read(); !read.ok()) return read.error();
  FleetWatch watch(host_, paths_, training, hooks, progress,
                   {.start = before.start,
                    .members = members,
                    .delivered = options_.own ? "" : paths_.parts(),
                    .began = {}});
  watch.look(FleetProgress::Until::kEnd);
  return Found(finish(training, progress, watch));
}

// What members have trained lies where they delivered it until the run is finished. Beside it is a
// checkpoint, if the engine makes one.
DoneSteps RunLead::finish(const LedTraining& training, const FleetProgress& progress, FleetWatch& watch) {
  cost_.nodes = options_.own ? options_.own->nodes : training.parts();
  if (own_ != nullptr) {
    const node::NodeProcesses::Cost own = own_->cost();
    cost_.cpu_seconds = own.cpu_seconds;
    cost_.peak_rss_bytes = own.peak_rss_bytes;
  }
  progress.add_to(cost_);
  cost_.recoveries.insert(cost_.recoveries.begin(), recoveries_.begin(), recoveries_.end());
  DoneSteps done = progress.done();
  if (training.parts() == 0) return done;
  done.steps = training.led_facts().steps;
  done.all = true;
  watch.keep_trained();
  return done;
}

// Listens where the coordinator was before: machines that are started again look for it there. The address of
// a run's own members is of no use to others. A mistake is told before anything of the run is removed.
Result<void> RunLead::look_where_it_listens(node::CoordinatorOptions& lead, const Before& before) const {
  if (options_.own) return {};
  lead.directory = before.file.nodes == 0 ? node::lead_directory(paths_.root) : paths_.root;
  const auto at = node::chosen_address(host_.disk, lead);
  if (!at.ok()) return at.error();
  lead.listen = at->control;
  lead.advertise = at->coordinator.host;
  return {};
}

// Adds to the options what follows from the run.
void RunLead::complete(node::CoordinatorOptions& options, const Led& led, StepNumber start) const {
  options.directory = node::lead_directory(paths_.root);
  options.configuration = node::run_configuration_bytes(
      {.engine = engine_, .program = options.program, .supply = led.supply, .own = led.configuration});
  options.tracks = led.tracks;
  options.file.engine = engine_;
  options.file.start = start;
  options.file.nodes = options_.own ? options_.own->nodes : 0;
  if (!options_.own) return;
  options.state = nodes_directory(paths_.root) + "/state";
  options.listen = {.host = "127.0.0.1", .port = 0};
  options.first_members = options.file.first = options_.own->nodes;
  options.report.log.level = node::LogLevel::kError;  // events.jsonl has the events
}

// Leads until the run ends, no member is left, or this process is to stop.
Result<RunLead::Ending> RunLead::lead_on(node::CoordinatorOptions options, const Led& led,
                                         const engine::TrainHooks& hooks, FleetWatch& watch,
                                         FleetProgress& progress) {
  const node::SupplyCompanion* companion = nullptr;
  options.make_companion = [&](const node::Aside& aside,
                               const node::Post& post) -> std::unique_ptr<node::Companion> {
    owners_->keep_by(aside);
    progress.sync_by(aside);
    owners_->follow_checkpoints([&watch] { return watch.newest_checkpoint(); });
    auto made = std::make_unique<node::SupplyCompanion>(
        host_.disk, led.supply.value_or(node::Supply()), aside,
        node::SupplyCompanion::Run{
            .reports = progress.reports(),
            .rules = *owners_,
            .books = [this](const cluster::Coordinator* books) { owners_->look(books_of(books)); },
            .over = [&watch] { return watch.over(); }},
        host_.clock.now());
    companion = made.get();
    if (!led.beside) return made;
    return std::make_unique<LeadCompanion>(std::move(made), led.beside->channel,
                                           led.beside->make(aside, post));
  };
  ReturnWatch returns;
  options.waits_for = [&](const cluster::View& view) { return waits_for(returns, view, watch); };
  LossWatch losses(*led.workload, [&] {
    watch.look(FleetProgress::Until::kNow);
    static_cast<void>(note_end());  // begin_anew() does it again
  });
  const bool own = options_.own.has_value();
  const bool begins = options.anew.has_value();
  auto node = node::CoordinatorNode::start(host_, std::move(options), own ? *led.workload : losses);
  if (!node.ok()) return node.error();
  if (own) return lead_own(**node, watch);
  if (auto told = tell_where(**node, begins); !told.ok()) return told.error();
  bool waits = false;  // nobody has worked in this fleet
  const auto done = (*node)->run([&] {
    if ((*node)->leads() && !losses.lost()) forget_end();
    const bool gone = (*node)->emptied() || is_overtaken(**node, watch, waits);
    // A run that is told to end does not begin anew. A loss ends the run by itself, and did so a moment ago.
    const bool anew = losses.lost().has_value() || (gone && !(*node)->ending());
    return hooks.stop_requested() || anew || gives_up(**node, *companion);
  });
  store_says_end_ = (*node)->ended();
  if ((*node)->ended()) owners_->settle();
  if (losses.lost()) {
    host_.warn(losses.lost()->message());
    return Ending::kGone;
  }
  if (!done.ok()) return done.error();
  if ((*node)->ended()) return Ending::kEnded;
  if (hooks.stop_requested()) return Ending::kInterrupted;
  if (room_.over()) return not_stored(*room_.why());
  return Ending::kGone;
}

// Whether there is a newer checkpoint than the one that a fleet begins with. A member that left without a
// coordinator brings what it saved then, before it serves. So this is looked at once more when the fleet has
// begun, and has saved nothing itself yet.
bool RunLead::is_overtaken(const node::CoordinatorNode& node, FleetWatch& watch, bool& waits) {
  if (!node.leads()) return false;
  const bool waited = std::exchange(waits, !node.begun());
  if (!waits && !waited) return false;
  if (!waits) watch.look(FleetProgress::Until::kNow);
  const bool overtaken = watch.newest_checkpoint() > watch.start();
  if (!waits && !overtaken) watch.forget_unfinished();  // files of this fleet would complete them
  return overtaken;
}

// What a member has brought may be a moment old.
std::string RunLead::waits_for(ReturnWatch& returns, const cluster::View& view, FleetWatch& watch) const {
  watch.look(FleetProgress::Until::kNow);
  ReturnWatch::Facts facts{.start = watch.start(),
                           .unfinished = watch.unfinished_checkpoint(),
                           .owners = owners_->last_owners(),
                           .unheard = owners_->unheard(),
                           .serving = {}};
  for (const NodeId node : view.expelled()) {
    facts.owners.erase(node);
    facts.unheard.erase(node);
  }
  for (const auto& [node, record] : view.members()) facts.serving.insert(node);
  return options_.own ? std::string() : returns.waits(facts, host_.clock.now());
}

// Says, once, how members join. A fleet that begins may have others than the one before, so there is a token
// for them. Members of before need none.
Result<void> RunLead::tell_where(node::CoordinatorNode& node, bool begins) {
  if (std::exchange(told_where_, true)) return {};
  std::string token;
  if (node.new_run() || begins) {
    auto made = node.new_token("printed at the start");
    if (!made.ok()) return made.error();
    token = *std::move(made);
  }
  return options_.leads(node.address(), token);
}

// A file says that --resume begins another fleet, whatever the store says of the one before. It comes before
// the lead's file names another start, and after what was delivered is safe: another fleet begins without the
// rest.
Result<void> RunLead::note_end() {
  begun_ = false;
  if (owners_ != nullptr && owners_->unheard().empty()) owners_->settle();
  if (auto synced = host_.disk.sync_directory(paths_.checkpoints()); !synced.ok()) return synced;
  return host::replace_file(host_.disk, ended_file(paths_.root), "");
}

// The fleet before has ended, and this one has begun: the store knows it.
void RunLead::forget_end() {
  if (begun_) return;
  begun_ = host_.disk.remove_all(ended_file(paths_.root)).ok() &&
           host_.disk.sync_directory(nodes_directory(paths_.root)).ok();
}

// Starts the processes, and leads them until all have ended.
Result<RunLead::Ending> RunLead::lead_own(node::CoordinatorNode& node, FleetWatch& watch) {
  const OwnNodes& wanted = *options_.own;
  const auto token = node.new_token("for this run's nodes");
  if (!token.ok()) return token.error();
  auto started = node::NodeProcesses::start(host_, {.run = paths_.root,
                                                    .nodes = wanted.nodes,
                                                    .threads_each = wanted.threads_each,
                                                    .program = wanted.program,
                                                    .at = node.address(),
                                                    .token = *token});
  if (!started.ok()) return started.error();
  own_ = *std::move(started);
  watch.follow(*own_, node);
  host_.say(fmt::format("{}, {} each; what they say is in {}/*.log", run::counted(wanted.nodes, "node"),
                        run::counted(wanted.threads_each, "thread"), nodes_directory(paths_.root)));
  const auto done = node.run([&] {
    if (watch.failure()) return true;
    if (!node.stopping()) return false;
    own_->end_within(kLeaveTime);
    return own_->all_ended();
  });
  // What the run has is in its directory by now. Nodes of a fleet that has not begun would look for this one.
  if (!done.ok() || watch.failure() || !node.begun()) own_->kill();
  own_->end_within(kEndTime);
  node::EventLoop loop(host_.clock);
  loop.run([]() -> std::optional<Instant> { return std::nullopt; }, [this] { return own_->all_ended(); });
  if (!done.ok()) return done.error();
  return Ending::kEnded;
}

// Whether this process gives up waiting for room on the disk. It says so and ends, and another process takes
// from the nodes what they have saved.
bool RunLead::gives_up(const node::CoordinatorNode& node, const node::SupplyCompanion& companion) {
  const auto failing = node.stopping() ? companion.failing() : std::nullopt;
  if (room_.begins(failing, host_.clock.now())) {
    host_.warn(
        fmt::format("the run is to end, and what its nodes have saved cannot be stored: {}\n"
                    "It is tried again for {:.0f} s: make room.",
                    failing->last.message(), RoomPatience::kPatience.seconds()));
  }
  return room_.over();
}

// The second directory has deliveries of members elsewhere that are on their way.
void remove_delivered(host::Disk& disk, const run::RunPaths& paths) {
  for (const std::string& one : {paths.parts(), paths.parts() + ".incoming", paths.reports()})
    static_cast<void>(disk.remove_all(one));
}

}  // namespace gossamer::commands
