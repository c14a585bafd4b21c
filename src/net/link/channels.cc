// SPDX-License-Identifier: Apache-2.0
#include "net/link/channels.h"

#include "net/link/frame.h"
#include "net/link/message.h"

namespace gossamer::net {
namespace {

constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kMiB = 1ULL << 20;
// What a member says to its coordinator: a report, a beat that names many nodes. Parsing may turn two
// bytes into an object of 48 bytes, so 1 MiB may take 24 MiB.
constexpr std::uint64_t kOfWords = kMiB;
// A chunk of an exchange (CollectiveLimits::chunk_bytes) and the message around it.
constexpr std::uint64_t kOfExchanges = kMiB + 4 * kKiB;
// A manifest and the set of chunks, or a chunk.
constexpr std::uint64_t kOfChunks = 17 * kMiB;
constexpr std::uint64_t kWhole = kMaxPayloadBytes + kMaxBodyBytes;

using enum Receiver;

constexpr std::array kChannelRules{
    ChannelRule{kControlChannel, Sender::kCoordinator, Lanes::kControl, kWhole, kMember},
    ChannelRule{kControlChannel, Sender::kServing, Lanes::kControl, kOfWords, kCoordinator},
    ChannelRule{kControlChannel, Sender::kJoining, Lanes::kControl, kOfWords, kCoordinator},
    ChannelRule{kCheckChannel, Sender::kServing, Lanes::kBoth, kOfExchanges, kMember},
    ChannelRule{kStepChannel, Sender::kServing, Lanes::kBoth, kOfExchanges, kMember},
    ChannelRule{kRecoveryChannel, Sender::kServing, Lanes::kBulk, kOfExchanges, kMember},
    ChannelRule{kChunkRequests, Sender::kCoordinator, Lanes::kBulk, 4 * kKiB, kMember},
    ChannelRule{kChunkRequests, Sender::kServing, Lanes::kBulk, 4 * kKiB, kAny},
    ChannelRule{kChunkRequests, Sender::kJoining, Lanes::kBulk, 4 * kKiB, kAny},
    ChannelRule{kChunkAnswers, Sender::kCoordinator, Lanes::kBulk, kOfChunks, kMember},
    ChannelRule{kChunkAnswers, Sender::kServing, Lanes::kBulk, kOfChunks, kAny},
    ChannelRule{kChunkAnswers, Sender::kJoining, Lanes::kBulk, kOfChunks, kCoordinator},
    ChannelRule{kDeliveries, Sender::kCoordinator, Lanes::kControl, 8 * kKiB, kMember},
    ChannelRule{kDeliveries, Sender::kServing, Lanes::kControl, 8 * kKiB, kCoordinator},
    ChannelRule{kDeliveries, Sender::kJoining, Lanes::kControl, 8 * kKiB, kCoordinator},
    ChannelRule{kQueryChannel, Sender::kCoordinator, Lanes::kBoth, kWhole, kMember},
    ChannelRule{kQueryChannel, Sender::kServing, Lanes::kBoth, kOfWords, kCoordinator},
    ChannelRule{kReports, Sender::kCoordinator, Lanes::kControl, 4 * kKiB, kMember},
    ChannelRule{kReports, Sender::kServing, Lanes::kControl, 64 * kKiB, kCoordinator},
    ChannelRule{kReports, Sender::kJoining, Lanes::kControl, 64 * kKiB, kCoordinator},
    ChannelRule{kEngineChannel, Sender::kServing, Lanes::kBoth, kOfExchanges, kMember},
    ChannelRule{kPipelineSteps, Sender::kServing, Lanes::kBulk, kMostBoundaryBytes, kMember},
    ChannelRule{kPipelineSums, Sender::kServing, Lanes::kBulk, kOfExchanges, kMember},
    ChannelRule{kPipelineRecords, Sender::kServing, Lanes::kControl, 8 * kKiB, kMember},
};

}  // namespace

std::span<const ChannelRule> channel_rules() { return kChannelRules; }

std::span<const ChannelRule> rules_of_membership() { return std::span(kChannelRules).first<3>(); }

}  // namespace gossamer::net
