// SPDX-License-Identifier: Apache-2.0
//
// SimInternet: machines, the links between them, and what goes wrong with both, in virtual time. Processes
// attach to a machine and get a Network (host/api/network.h).
//
// What is modelled:
// - Each machine has an uplink and a downlink of a certain rate. Its connections share them in turns of 16
//   KiB, as TCP connections share a bottleneck. What waits for a downlink comes by its new rate, if that
//   changes.
// - Each path has a one-way delay, jitter for each segment, and loss. A lost segment costs the time that TCP
//   takes to send it again, and the order is kept.
// - Opening a connection takes four round trips (three for a question), as one of host/grpc does: TCP, TLS,
// HTTP/2's settings, and the
//   stream. It is begun again where the path is cut, for at most 5 s.
// - A path may be cut, or its connections may break, for one lane alone.
// - A cut path holds segments back. A connection that gets nothing through for 20 s breaks, at the side that
//   sends.
// - A machine that vanishes is silent. A process that ends resets its connections.
// - A paused machine takes bytes until the window is full, and says nothing.
//
// Not modelled: slow start, headers, CPU.
//
// Deterministic: the same calls and seed give the same events at the same instants. Thread rule: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/rng.h"
#include "host/api/network.h"
#include "host/sim/timeline.h"

namespace gossamer::host {

class SimNetwork;
struct SimConnection;

// One end of a connection; side 0 opened it.
struct SimEnd {
  std::shared_ptr<SimConnection> connection;
  int side = 0;
};

// A segment: what an uplink sends at a time.
struct SimSegment {
  std::uint64_t bytes = 0;
  std::optional<Slices> frame;  // the frame that ends with this segment
  // The last segment of an opening carries no bytes but this: the acceptor's name.
  std::optional<PeerName> welcome = {};
};

// One direction between two machines.
struct PathQuality {
  Duration delay = from_milliseconds(10);  // one way
  Duration jitter = {};                    // each segment takes up to this much longer
  double loss = 0;                         // of segments, 0 <= loss < 1
};

struct MachineRates {
  double up_bytes_per_second = 125e6;  // 1 Gb/s
  double down_bytes_per_second = 125e6;
};

struct SimListener {
  SimNetwork* network = nullptr;
  Lane lane = Lane::kControl;
};

// One way from a machine to another, where it is not as all others are.
struct SimWay {
  std::array<bool, kLanes> cut = {};
  std::optional<PathQuality> quality = {};
};

// An event that waits for a slow downlink.
struct SimLateEvent {
  SimEnd to;
  Instant when;
  NetworkEvent event;
};

// A machine stays where it is as long as its internet lives.
struct SimMachine {
  std::string name;
  MachineRates rates = {};
  bool hidden = false;
  bool paused = false;
  bool gone = false;
  bool sending = false;
  Instant downlink_free = {};
  std::map<std::uint64_t, SimLateEvent> late = {};  // by their order
  std::uint64_t last_late = 0;
  std::deque<SimEnd> turns = {};
  std::map<std::uint16_t, SimListener> listeners = {};
  std::vector<std::function<void()>> held = {};  // deliveries while paused
  std::uint64_t bytes_sent = 0;
  std::map<const SimMachine*, SimWay> ways = {};  // only looked up: the order of addresses means nothing
};

class SimInternet {
 public:
  static constexpr std::uint64_t kSegmentBytes = 16ULL << 10;
  static constexpr Duration kGiveUp{20'000'000'000};  // nothing got through: the connection breaks
  static constexpr Duration kConnectTimeout{5'000'000'000};

  SimInternet(Timeline& timeline, std::uint64_t seed);
  ~SimInternet();
  SimInternet(const SimInternet&) = delete;
  SimInternet& operator=(const SimInternet&) = delete;

  // Starts a process on `machine`. It ends with the Network, and its connections are then reset. The internet
  // outlives it.
  [[nodiscard]] std::unique_ptr<Network> attach(const std::string& machine, PeerName name, NetworkSink sink);

  void set_default_path(const PathQuality& quality) { default_path_ = quality; }
  void set_path(const std::string& from, const std::string& to, const PathQuality& quality);
  [[nodiscard]] PathQuality path(const std::string& from, const std::string& to) {
    return path(machine_named(from), machine_named(to));
  }
  void set_rates(const std::string& machine, const MachineRates& rates);
  [[nodiscard]] const MachineRates& rates(const std::string& machine) { return machine_named(machine).rates; }

  // Nothing gets from `from` to `to` until healed. Each direction is cut by itself, and each lane may be.
  void cut(const std::string& from, const std::string& to);
  void heal(const std::string& from, const std::string& to);
  void cut(const std::string& from, const std::string& to, Lane lane) { set_cut(from, to, lane, true); }
  void heal(const std::string& from, const std::string& to, Lane lane) { set_cut(from, to, lane, false); }
  // Breaks every connection between the two, as a firewall that forgot them does; new ones are possible. With
  // a lane, only those of that lane.
  void reset(const std::string& a, const std::string& b, std::optional<Lane> lane = std::nullopt);
  // Hides the machine behind NAT: nobody outside can open a connection to it; it can open connections itself.
  void hide(const std::string& name) { machine_named(name).hidden = true; }
  void show(const std::string& name) { machine_named(name).hidden = false; }
  // The machine stops for a while: nothing is read or sent, nobody is told.
  void pause(const std::string& machine);
  void resume(const std::string& machine);
  // Power off: silence. Its processes get no more events.
  void vanish(const std::string& machine);
  [[nodiscard]] bool is_there(const std::string& name) { return !machine_named(name).gone; }

  // All bytes of frames that have left a machine, payload and other.
  [[nodiscard]] std::uint64_t bytes_sent(const std::string& name) { return machine_named(name).bytes_sent; }
  // A hash of all frames in the order in which processes gave them: any byte of any message changes it.
  [[nodiscard]] std::uint64_t frames_hash() const { return frames_.value(); }

 private:
  friend class SimNetwork;
  friend class SimQuestions;
  enum class Tell { kProcess, kNobody };

  // The machine of this name, made at its first use.
  [[nodiscard]] SimMachine& machine_named(const std::string& name);

  [[nodiscard]] static bool is_cut(const SimMachine& from, const SimMachine& to, Lane lane);
  void set_cut(const std::string& from, const std::string& to, Lane lane, bool is_cut);
  [[nodiscard]] const PathQuality& path(const SimMachine& from, const SimMachine& to) const;
  [[nodiscard]] Duration delay(const SimMachine& from, const SimMachine& to);

  // A connection opens in eight one-way messages, to and fro. With the seventh the opener's name is there
  // (Accepted), and the eighth is a welcome (Opened).
  void open(const std::shared_ptr<SimConnection>& connection, const Endpoint& to);
  void cross(const SimEnd& from, std::function<void()> arrived);
  // Crosses so many times, first from this side.
  void cross_again(const SimEnd& from, int times, std::function<void()> arrived);
  void answer(const std::shared_ptr<SimConnection>& connection, const Endpoint& to);
  void refuse_stranger(const std::shared_ptr<SimConnection>& connection);
  void accept(const std::shared_ptr<SimConnection>& connection, const Endpoint& to);
  [[nodiscard]] static bool listens(const SimConnection& connection, const Endpoint& to);
  void want_to_send(const SimEnd& end);
  void pump(SimMachine& machine);
  void segment_sent(const SimEnd& end, std::uint64_t bytes);
  void travel(const SimEnd& end, SimSegment segment);
  void watch_stall(const SimEnd& end, Instant since);
  void arrived(const SimEnd& end, SimSegment segment);
  void consumed(const SimEnd& receiver, std::uint64_t cost);
  // Ends this side; the other end hears of it as far as the path carries it.
  void end_side(const SimEnd& end, const std::string& what, Tell tell);
  void reset_other(const SimEnd& end, const std::string& what);
  // Hands an event to the side's process, after all its earlier ones, when its machine is running.
  void emit(const SimEnd& end, Instant when, NetworkEvent event);
  void emit_late(const SimEnd& end, Instant when, NetworkEvent event);
  // Now, or when the machine goes on; never if it is gone.
  template <class Delivery>
  static void hand_over(SimMachine& machine, Delivery&& delivery) {
    if (machine.gone) return;
    if (machine.paused) {
      machine.held.emplace_back(std::forward<Delivery>(delivery));
    } else {
      delivery();
    }
  }

  Timeline& timeline_;
  Rng rng_;
  PathQuality default_path_;
  std::map<std::string, SimMachine> machines_;
  std::vector<std::weak_ptr<SimConnection>> connections_;
  Digest frames_;
};

}  // namespace gossamer::host
