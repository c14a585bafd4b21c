// SPDX-License-Identifier: Apache-2.0
//
// QueryDesk is where two threads meet: the asking thread, which has queries, and the leading thread, which
// leads the nodes that answer them (query_asker.h). One block is under way at a time. The leading thread
// does not end its loop before ending() says so. Until then the asking thread may wake it.
//
// Thread rule: each part says which thread may call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "host/api/clock.h"
#include "host/api/endpoint.h"
#include "host/posix/mailbox.h"
#include "node/companion.h"

namespace gossamer::commands {

// A block of queries for FleetQueries::ask().
struct AskedBlock {
  std::uint64_t number = 0;  // another number for each block
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  std::size_t labels = 0;
  std::vector<float> compared = {};
  std::size_t neighbours = 0;
};

// A copy of the block.
[[nodiscard]] AskedBlock asked_block(std::uint64_t number, const sparse_engine::FleetQueries::Block& block);

class QueryDesk {
 public:
  using Found = sparse_engine::FleetQueries::Answer;
  // How members reach the lead, and how its loop is woken.
  struct Led {
    host::Endpoint at;
    std::string token;
    node::Post wake;
  };
  struct Ready {
    std::size_t members = 0;
    bool whole = false;  // all parts are there
    Epoch epoch = {};    // that gave the members their parts
    bool operator==(const Ready&) const = default;
  };
  struct Answer {
    std::uint64_t number = 0;  // of the block
    Result<Found> found;
  };
  struct Patience {
    Duration time;
    std::function<bool()> stop = {};  // asked again and again; true ends waiting; may be empty
    // So long after that, counted anew while the lead reaches all nodes that were asked. Zero: no longer.
    Duration after_stop = {};
  };

  // For the asking thread. Errors: the one that fails() was given; kFailed when the patience
  // is over or the lead has ended.
  [[nodiscard]] Result<Led> wait_until_led(const host::Clock& clock, const Patience& patience);
  [[nodiscard]] Result<void> wait_until_whole(const host::Clock& clock, const Patience& patience);
  // Requires wait_until_led(). Once an answer has not come in time, the next calls fail at once, until that
  // answer comes or all parts are shown again. Otherwise each of many callers would wait as long in vain.
  [[nodiscard]] Result<Found> ask(AskedBlock block, const host::Clock& clock, const Patience& patience);
  // What the lead has shown last, as far as the last call of this thread has heard.
  [[nodiscard]] const Ready& ready() const { return ready_; }
  // Why all later calls fail, if they do. Does not wait.
  [[nodiscard]] std::optional<Error> ended();
  // Tells that there are no more queries.
  void end() { asked_.push(End()); }

  // For the leading thread.
  void leads(Led led) { said_.push(std::move(led)); }
  void shows(Ready ready) { said_.push(ready); }
  // Whether all nodes that were asked last are there, and have their parts still.
  void reaches(bool all) { said_.push(Reach{all}); }
  void gives(Answer answer) { said_.push(std::move(answer)); }
  void fails(Error error) { said_.push(std::move(error)); }
  void closes() { said_.push(Closed()); }
  [[nodiscard]] std::optional<AskedBlock> take_question();
  [[nodiscard]] bool ending();
  // Waits until ending(). Questions before that stay unanswered.
  void wait_for_end();

 private:
  struct Reach {
    bool all = false;
  };
  struct Closed {};
  struct End {};
  using Said = std::variant<Led, Ready, Reach, Answer, Error, Closed>;
  using Asked = std::variant<AskedBlock, End>;

  [[nodiscard]] Result<void> wait(const host::Clock& clock, const Patience& patience,
                                  const std::function<bool()>& there);
  void hear(Said said);
  [[nodiscard]] std::optional<Error> end_of_lead() const;
  void take_asked(Duration patience);
  [[nodiscard]] Error not_there(std::string got) const;

  host::Mailbox<Said> said_;
  host::Mailbox<Asked> asked_;

  // State of the asking thread, as far as it has heard.
  std::optional<Led> led_;
  Ready ready_;
  bool reaches_ = false;
  std::optional<Answer> answer_;
  bool away_ = false;  // nothing was heard since an answer did not come in time
  std::optional<Error> failure_;
  bool closed_ = false;

  // State of the leading thread.
  std::optional<AskedBlock> question_;
  bool ending_ = false;
};

}  // namespace gossamer::commands
