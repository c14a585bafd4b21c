// SPDX-License-Identifier: Apache-2.0
//
// How a node reports: its log (node_log.h), and the endpoint of its metrics (metrics_endpoint.h). Apart from
// these, because commands that fill in options need no logger.
//
// Thread rule: plain values.
#pragma once

#include <optional>

#include "host/api/endpoint.h"

namespace gossamer::node {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat {
  kText,    // 19:20:31 epoch 7: lost node 3: it is silent
  kLogfmt,  // time=... level=warning run=... node=1 epoch=7 event=lost peer=3 text="it is silent"
  kJson,    // the same fields, an object a line
};
struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

struct ReportOptions {
  LogOptions log;
  std::optional<host::Endpoint> metrics = std::nullopt;  // where Prometheus may ask
};

}  // namespace gossamer::node
