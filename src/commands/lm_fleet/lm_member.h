// SPDX-License-Identifier: Apache-2.0
//
// A member of a language model's run: its engine, and the job that it makes of what the lead tells.
//
// Thread rule: the loop thread. The job is made and used on the thread that does the engine's Work.
#pragma once

#include <string_view>

#include "commands/engine/member_place.h"
#include "commands/lm/lm_modules.h"

namespace gossamer::commands {

// The file of the Supply with the tokens of the run.
inline constexpr std::string_view kLmTokens = "train.tokens";

[[nodiscard]] MemberKinds lm_member(const MemberPlace& place, const LmModules& modules);

}  // namespace gossamer::commands
