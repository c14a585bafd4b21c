// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the bodies of two requests that are answered in one block, of any content type. Each request
// gets one reply: an answer in JSON, or 400. What one client sends changes no other client's reply.
#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "choices.h"
#include "commands/engine/prediction_service.h"
#include "commands/predict/prediction.h"
#include "host/sim/clock.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "run/node_host.h"

namespace {

using namespace gossamer;
using namespace gossamer::commands;

class Silent final : public run::Console {
 public:
  void write(std::string_view) override {}
  [[nodiscard]] bool terminal() const override { return false; }
  [[nodiscard]] int columns() const override { return 80; }
};

sparse_engine::Model model() {
  sparse_engine::Model model;
  model.network = sparse::Network({.features = 4, .labels = 3, .hidden = 16}, sparse::Moments::kNone);
  for (std::size_t f = 0; f < 4; ++f) model.network.embedding.weights(f)[f] = 1;
  for (std::size_t l = 0; l < 3; ++l) model.network.output.weights(l)[l] = static_cast<float>(l + 1);
  model.label_count = {3, 2, 1};
  return model;
}

std::unique_ptr<PredictSession> make_session() {
  static host::SimDisk disk;
  static host::SimClock clock;
  static host::SimCompute compute{host::SimComputeOptions{.workers = 2}};
  static Silent console;
  auto session = PredictSession::create({.disk = disk,
                                         .clock = clock,
                                         .compute = compute,
                                         .kernels = kernels::kernels_for(kernels::best_isa()),
                                         .console = console},
                                        model(), {.top = 2});
  CHECK(session.ok());
  return *std::move(session);
}

host::HttpRequest request(fuzz::Choices& choices) {
  constexpr std::array<const char*, 4> kTypes = {"application/json", "application/x-ndjson", "text/plain",
                                                 "text/html"};
  host::HttpRequest made{.content_type = kTypes[choices.below(kTypes.size())]};
  if (choices.flip()) made.parameters["top"] = choices.text(12);
  made.body = choices.text(200);
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<PredictSession> session = make_session();
  fuzz::Choices choices(data, size);
  const std::array<host::HttpRequest, 2> both = {request(choices), request(choices)};
  PredictionService service(*session);
  const auto replies = service.answer(both);
  CHECK(replies.size() == both.size());
  for (std::size_t i = 0; i < both.size(); ++i) {
    const host::HttpReply& reply = replies[i];
    CHECK(reply.status == 200 || (reply.status >= 400 && reply.status < 500), reply.status);
    const auto alone = service.answer(std::span(&both[i], 1));
    CHECK(alone.at(0).status == reply.status && alone.at(0).body == reply.body, reply.body);
    if (reply.status == 200 && both[i].content_type == "application/json")
      CHECK(nlohmann::json::accept(reply.body), reply.body);
  }
  return 0;
}
