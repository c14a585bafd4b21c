// SPDX-License-Identifier: Apache-2.0
//
// The question Enroll, from both ends (docs/protocols/admission.md, "Enrolling"). The coordinator checks a
// request, then takes a node id, then admits. It takes the id in its own way, because the id must be
// persisted before the answer. The node reads the answer. Keys and certificates are texts here: code that has
// OpenSSL makes and checks them.
//
// Thread rule: plain functions.
#pragma once

#include <gossamer/admission.pb.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "cluster/admission/token_book.h"

namespace gossamer::cluster {

inline constexpr const char* kEnrollMethod = "Enroll";
inline constexpr const char* kRenewMethod = "Renew";
// The answer of a coordinator that waits for its store, or stands by. It may lead in a moment.
inline constexpr std::string_view kLeadsNotNow = "this coordinator does not lead the run now";

// The link's wire versions that a program speaks, both included.
struct WireRange {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

// Facts that every node of the run is told.
struct RunIdentity {
  std::string run;        // its id
  std::string authority;  // PEM
  WireRange wire;         // what the coordinator speaks
};

// What a stranger is measured by.
struct EnrollRules {
  const RunIdentity& run;
  TokenBook& tokens;
  std::int64_t now = 0;                                   // seconds since 1970-01-01 UTC
  std::function<std::uint64_t(const std::string&)> used;  // nodes that the token of this id has let in
};
// Checks whether a stranger may enrol, and changes nothing. The request must be readable (else kBadData). A
// wire version must be in common, and the token must have a use left (else kRefused). The book must find the
// token good (else the book's error).
[[nodiscard]] Result<wire::EnrollRequest> check_enroll(const std::string& body, const EnrollRules& rules);

// Signs a certificate for the key in a certificate request, under a name.
using Signer = std::function<Result<std::string>(const std::string& request, const std::string& name)>;

// Returns the answer to a checked request, as bytes. The error is the signer's.
[[nodiscard]] Result<std::string> admit(const wire::EnrollRequest& request, NodeId node,
                                        const RunIdentity& run, const Signer& signer);

// The node's half of the question. Requires texts that fit into a question.
struct EnrollProof {
  Token token;
  std::string request;  // certificate request, PEM
  WireRange wire;
  std::string program;
};
[[nodiscard]] std::string enroll_request(const EnrollProof& proof);

// A membership as the coordinator gives it. The caller checks whether the certificate is what it says.
struct Enrolled {
  NodeId node;
  std::string run;
  std::string certificate;
  std::string authority;
  std::uint32_t wire = 0;
};
// The error is kBadData for a body that is no complete answer.
[[nodiscard]] Result<Enrolled> read_enroll_answer(const std::string& body);

// The question Renew, from both ends: another certificate for the key of a node. The certificate that it has
// names it. A node shows that in the handshake. One whose certificate has ended asks as a stranger, and sends
// it. Texts are PEM. The errors are kBadData, and the signer's.
struct RenewProof {
  std::string request;           // certificate request
  std::string certificate = {};  // of a stranger; else empty
};
[[nodiscard]] std::string renew_request(const RenewProof& proof);
[[nodiscard]] Result<RenewProof> read_renew_request(const std::string& body);
// `node` is proven by then.
[[nodiscard]] Result<std::string> renew(const std::string& body, NodeId node, const Signer& signer);
[[nodiscard]] Result<std::string> read_renew_answer(const std::string& body);

}  // namespace gossamer::cluster
