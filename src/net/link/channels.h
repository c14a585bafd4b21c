// SPDX-License-Identifier: Apache-2.0
//
// The channels of a run's links: number, name, and which nodes may send how much (docs/protocols/link.md,
// "Channels"). A user of links takes its channel from here. Thread rule: constants.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "net/link/channel_rules.h"

namespace gossamer::net {

inline constexpr std::uint32_t kControlChannel = 1;
inline constexpr std::uint32_t kCheckChannel = 2;
inline constexpr std::uint32_t kStepChannel = 3;
inline constexpr std::uint32_t kRecoveryChannel = 4;
inline constexpr std::uint32_t kChunkRequests = 5;
inline constexpr std::uint32_t kChunkAnswers = 6;
inline constexpr std::uint32_t kDeliveries = 7;
inline constexpr std::uint32_t kQueryChannel = 8;
inline constexpr std::uint32_t kReports = 9;
inline constexpr std::uint32_t kEngineChannel = 10;  // of an engine without a row of its own
inline constexpr std::uint32_t kPipelineSteps = 11;
inline constexpr std::uint32_t kPipelineSums = 12;
inline constexpr std::uint32_t kPipelineRecords = 13;

// A boundary between two stages: 2,048 tokens of 4,096 numbers in f32, with their tokens, and room.
inline constexpr std::uint64_t kMostBoundaryBytes = 40ULL << 20;

inline constexpr std::array<std::pair<std::uint32_t, std::string_view>, 13> kChannelNames{{
    {kControlChannel, "membership"},
    {kCheckChannel, "fleet check"},
    {kStepChannel, "steps"},
    {kRecoveryChannel, "recoveries, snapshots"},
    {kChunkRequests, "requests of chunks"},
    {kChunkAnswers, "answers with chunks"},
    {kDeliveries, "deliveries"},
    {kQueryChannel, "queries"},
    {kReports, "reports"},
    {kEngineChannel, "exchanges of another engine"},
    {kPipelineSteps, "microbatches"},
    {kPipelineSums, "sums of a stage"},
    {kPipelineRecords, "records of steps"},
}};

// All rows, by channel.
[[nodiscard]] std::span<const ChannelRule> channel_rules();
// Those of membership alone, for a coordinator that serves no other channel.
[[nodiscard]] std::span<const ChannelRule> rules_of_membership();

}  // namespace gossamer::net
