// SPDX-License-Identifier: Apache-2.0
//
// Any text as a coordinator's status, as a file address.json, and as the questions of users: read, or
// kBadData. Text shown to people is printable. An address that was read is the same after it was kept.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "host/api/files.h"
#include "host/sim/disk.h"
#include "node/cluster_status.h"
#include "node/places.h"
#include "node/questions.h"

namespace {

using namespace gossamer;

bool printable(const std::string& text) {
  return std::ranges::all_of(text, [](char one) { return one == '\n' || (one >= ' ' && one <= '~'); });
}

void status(const std::string& json) {
  const auto facts = node::status_facts(json);
  const auto text = node::status_text(json);
  if (facts.ok()) {
    CHECK(printable(facts->run) && printable(facts->program));
  } else {
    CHECK(facts.error().kind == ErrorKind::kBadData && !text.ok());
  }
  CHECK(text.ok() ? printable(*text) : text.error().kind == ErrorKind::kBadData);
}

void address(const std::string& json) {
  host::SimDisk disk{{}};
  CHECK(disk.make_directories("/run").ok());
  CHECK(host::replace_file(disk, "/run/address.json", json).ok());
  const auto read = node::load_address(disk, "/run");
  if (!read.ok()) {
    CHECK(read.error().kind == ErrorKind::kBadData && read.error().where == "/run/address.json");
    return;
  }
  CHECK(node::keep_address(disk, "/run", *read).ok());
  const auto again = node::load_address(disk, "/run");
  CHECK(again.ok());
  CHECK(again->coordinator == read->coordinator && again->control == read->control);
  CHECK(again->bulk == read->bulk && again->others == read->others && again->led == read->led);
}

void questions(const std::string& body) {
  const auto proof = node::read_status_question(body);
  CHECK(proof.ok() || proof.error().kind == ErrorKind::kBadData);
  const auto wish = node::read_expel_question(body);
  CHECK(wish.ok() || wish.error().kind == ErrorKind::kBadData);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  status(bytes);
  address(bytes);
  questions(bytes);
  return 0;
}
