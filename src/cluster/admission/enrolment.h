// SPDX-License-Identifier: Apache-2.0
//
// The question Enroll, from both ends: docs/protocols/admission.md, "Enrolling". The coordinator checks a
// request, takes a node id in its own way (it must be persisted before it is answered), and admits; the node
// reads what it is given. Keys and certificates are texts here; whoever has OpenSSL makes and checks them.
//
// Thread rule: plain functions.
#pragma once

#include <gossamer/admission.pb.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "cluster/admission/token_book.h"

namespace gossamer::cluster {

inline constexpr const char* kEnrollMethod = "Enroll";

// The link's wire versions that a program speaks, both included.
struct WireRange {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

// What every node of the run is told.
struct RunIdentity {
  std::string run;        // its id
  std::string authority;  // PEM
  WireRange wire;         // what the coordinator speaks
};

// Whether whoever asks may enrol: a request that can be read (else kBadData), a wire version in common, a
// token that is good (else kRefused). Nothing has happened yet.
[[nodiscard]] Result<wire::EnrollRequest> check_enroll(const std::string& body, const RunIdentity& run,
                                                       TokenBook& tokens, std::int64_t now);

// Signs a certificate for the key in a certificate request, under a name.
using Signer = std::function<Result<std::string>(const std::string& request, const std::string& name)>;

// The answer for a request that was checked, as bytes. The error is the signer's.
[[nodiscard]] Result<std::string> admit(const wire::EnrollRequest& request, NodeId node,
                                        const RunIdentity& run, const Signer& signer);

// The node's half. Requires texts that fit into a question.
struct EnrollProof {
  Token token;
  std::string request;  // certificate request, PEM
  WireRange wire;
  std::string program;
};
[[nodiscard]] std::string enroll_request(const EnrollProof& proof);

// A membership as the coordinator gives it. Whether the certificate is what it says is for others to check.
struct Enrolled {
  NodeId node;
  std::string run;
  std::string certificate;
  std::string authority;
  std::uint32_t wire = 0;
};
// kBadData for what is no answer.
[[nodiscard]] Result<Enrolled> read_enroll_answer(const std::string& body);

}  // namespace gossamer::cluster
