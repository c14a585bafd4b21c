// SPDX-License-Identifier: Apache-2.0
#include "net/link/channels.h"

#include "net/link/frame.h"
#include "net/link/message.h"

namespace gossamer::net {
namespace {

constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kMiB = 1ULL << 20;
// A chunk of an exchange (CollectiveLimits::chunk_bytes) and the message around it.
constexpr std::uint64_t kOfExchanges = kMiB + 4 * kKiB;
// A manifest and the set of chunks, or a chunk.
constexpr std::uint64_t kOfChunks = 72 * kMiB;
constexpr std::uint64_t kWhole = kMaxPayloadBytes + kMaxBodyBytes;

constexpr std::array kChannelRules{
    ChannelRule{kControlChannel, Sender::kCoordinator, Lanes::kControl, kWhole},
    ChannelRule{kControlChannel, Sender::kServing, Lanes::kControl, 64 * kMiB},
    ChannelRule{kControlChannel, Sender::kJoining, Lanes::kControl, kMiB},
    ChannelRule{kCheckChannel, Sender::kServing, Lanes::kBoth, kOfExchanges},
    ChannelRule{kStepChannel, Sender::kServing, Lanes::kBoth, kOfExchanges},
    ChannelRule{kRecoveryChannel, Sender::kServing, Lanes::kBulk, kOfExchanges},
    ChannelRule{kChunkRequests, Sender::kCoordinator, Lanes::kBulk, 4 * kKiB},
    ChannelRule{kChunkRequests, Sender::kServing, Lanes::kBulk, 4 * kKiB},
    ChannelRule{kChunkRequests, Sender::kJoining, Lanes::kBulk, 4 * kKiB},
    ChannelRule{kChunkAnswers, Sender::kCoordinator, Lanes::kBulk, kOfChunks},
    ChannelRule{kChunkAnswers, Sender::kServing, Lanes::kBulk, kOfChunks},
    ChannelRule{kChunkAnswers, Sender::kJoining, Lanes::kBulk, kOfChunks},
    ChannelRule{kDeliveries, Sender::kCoordinator, Lanes::kControl, 8 * kKiB},
    ChannelRule{kDeliveries, Sender::kServing, Lanes::kControl, 8 * kKiB},
    ChannelRule{kDeliveries, Sender::kJoining, Lanes::kControl, 8 * kKiB},
    ChannelRule{kQueryChannel, Sender::kCoordinator, Lanes::kBoth, kWhole},
    ChannelRule{kQueryChannel, Sender::kServing, Lanes::kBoth, kWhole},
    ChannelRule{kReports, Sender::kCoordinator, Lanes::kControl, 4 * kKiB},
    ChannelRule{kReports, Sender::kServing, Lanes::kControl, 64 * kKiB},
    ChannelRule{kReports, Sender::kJoining, Lanes::kControl, 64 * kKiB},
    ChannelRule{kEngineChannel, Sender::kServing, Lanes::kBoth, kOfExchanges},
};

}  // namespace

std::span<const ChannelRule> channel_rules() { return kChannelRules; }

}  // namespace gossamer::net
