// SPDX-License-Identifier: Apache-2.0
//
// The headers of torch that this folder uses. It is included before all others, because torch defines CHECK
// too: afterwards the name is that of base/check.h. Thread rule: none.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#undef CHECK
