// SPDX-License-Identifier: Apache-2.0
#include "node/places.h"

#include <gtest/gtest.h>

#include <string>

#include "cluster/admission/token.h"
#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::node {
namespace {

const host::Endpoint kHere{"10.0.0.1", 7070};

// Makes as much of a run's or node's directory as a search looks at.
void make_place(host::SimDisk& disk, const std::string& directory, const RunAddress& address) {
  ASSERT_TRUE(disk.make_directories(directory + "/credentials").ok());
  ASSERT_TRUE(
      host::replace_file(disk, directory + "/credentials/certificate.pem", std::string_view("x")).ok());
  ASSERT_TRUE(keep_address(disk, directory, address).ok());
}

// An address is read back as it was kept, with and without the ports where the coordinator listens. Anything
// else in the file is bad data, and the error names the file.
TEST(Places, Address) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("/run").ok());
  EXPECT_EQ(load_address(disk, "/run").error().kind, ErrorKind::kFailed);
  for (const RunAddress& kept :
       {RunAddress{.coordinator = {"fe80::1", 7}}, RunAddress{.coordinator = kHere,
                                                              .control = host::Endpoint{"0.0.0.0", 7070},
                                                              .bulk = host::Endpoint{"0.0.0.0", 9},
                                                              .others = {{"fe80::1", 7}, {"a", 1}},
                                                              .led = true,
                                                              .shared = true}}) {
    ASSERT_TRUE(keep_address(disk, "/run", kept).ok());
    const auto read = load_address(disk, "/run");
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ((*read).coordinator, kept.coordinator);
    EXPECT_EQ((*read).control, kept.control);
    EXPECT_EQ((*read).bulk, kept.bulk);
    EXPECT_EQ((*read).others, kept.others);
    EXPECT_EQ((*read).led, kept.led);
    EXPECT_EQ((*read).shared, kept.shared);
  }
  for (const char* const text :
       {"", "{", "[]", "{}", R"({"version":1})", R"({"version":2,"coordinator":"a:1"})",
        R"({"version":1,"coordinator":7})", R"({"version":1,"coordinator":"nowhere"})",
        R"({"version":1,"coordinator":"a:1","control":{}})"}) {
    ASSERT_TRUE(host::replace_file(disk, "/run/address.json", std::string_view(text)).ok());
    const auto read = load_address(disk, "/run");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData) << text;
    EXPECT_EQ(read.error().where, "/run/address.json");
  }
}

// JSON that is nested as deep as the size of a file allows is no address, and takes no stack.
TEST(Places, DeeplyNestedIsNone) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("/run").ok());
  const std::string deep = std::string(32'000, '[') + std::string(32'000, ']');
  for (const std::string& text :
       {R"({"version":)" + deep + "}", R"({"version":1,"coordinator":"h:1","others":[)" + deep + "]}"}) {
    ASSERT_TRUE(host::replace_file(disk, "/run/address.json", text).ok());
    const auto read = load_address(disk, "/run");
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData);
  }
}

// An address means the coordinator noted for just that address, else a node that joined there,
// else the coordinator noted for the port. A given token or directory goes before. A damaged
// or outdated note counts as none.
TEST(Places, WhoIsMeant) {
  host::SimDisk disk;
  const auto found = [&](const std::string& target) {
    auto answer =
        find_target(disk, {.state = "/state", .target = target, .token = std::nullopt, .directory = {}});
    return answer.ok() ? (*answer).asker.directory : "none: " + answer.error().where;
  };
  EXPECT_EQ(found("10.0.0.1:7070"), "none: 10.0.0.1:7070");
  EXPECT_EQ(found("no/directory"), "none: no/directory");
  make_place(disk, "/run", {.coordinator = kHere, .control = kHere, .bulk = kHere});
  EXPECT_EQ(found("/run"), "/run");
  // Only in its coordinator's directory is it known where a run listens.
  const auto listens = [&](const std::string& target) {
    const auto answer =
        find_target(disk, {.state = "/state", .target = target, .token = std::nullopt, .directory = {}});
    return answer.ok() && answer->listens == kHere;
  };
  EXPECT_TRUE(listens("/run"));
  make_place(disk, "/node", {.coordinator = kHere});
  EXPECT_FALSE(listens("/node"));
  EXPECT_EQ(found("10.0.0.1:7070"), "none: 10.0.0.1:7070");
  ASSERT_TRUE(note_coordinator(disk, "/state", 7070, "/run").ok());
  EXPECT_EQ(found("10.0.0.1:7070"), "/run");
  EXPECT_EQ(found("localhost:7070"), "/run");
  EXPECT_EQ(found("localhost:7071"), "none: localhost:7071");
  make_place(disk, "/state/nodes/0123", {.coordinator = {"localhost", 7070}});
  EXPECT_EQ(found("localhost:7070"), "/state/nodes/0123");
  EXPECT_EQ(found("10.0.0.1:7070"), "/run");
  const auto told =
      find_target(disk, {.state = "/state", .target = "localhost:7070", .token = "t", .directory = {}});
  ASSERT_TRUE(told.ok());
  EXPECT_EQ((*told).asker.token, "t");
  ASSERT_TRUE(disk.rename("/run", "/moved").ok());
  EXPECT_EQ(found("10.0.0.1:7070"), "none: 10.0.0.1:7070");
  ASSERT_TRUE(host::replace_file(disk, "/state/coordinators/7070.json", std::string_view("?")).ok());
  EXPECT_EQ(found("10.0.0.1:7070"), "none: 10.0.0.1:7070");
  EXPECT_EQ(found("/moved"), "/moved");
}

// A node without a token takes the directory of its earlier life at that address. A second node of the same
// machine is told that it needs its own. A text that is no token is refused before anything is made.
TEST(Places, WhereANodeLives) {
  host::SimDisk disk;
  const JoinPlace again{.state = "/state", .coordinator = kHere, .token = std::nullopt};
  EXPECT_EQ(take_node_directory(disk, again).error().kind, ErrorKind::kUsage);
  make_place(disk, "/state/nodes/0123", {.coordinator = kHere});
  const auto first = take_node_directory(disk, again);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first).path, "/state/nodes/0123");
  const auto second = take_node_directory(disk, again);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().fix.find("--dir"), std::string::npos);

  const cluster::Token token{.at = kHere,
                             .id = "0123456789abcdef",
                             .secret = std::string(cluster::kSecretBytes, 's'),
                             .authority = std::string(64, 'a')};
  const JoinPlace fresh{.state = "/state", .coordinator = kHere, .token = cluster::encode_token(token)};
  const auto third = take_node_directory(disk, fresh);
  const auto fourth = take_node_directory(disk, fresh);
  ASSERT_TRUE(third.ok() && fourth.ok());
  EXPECT_EQ((*third).path, "/state/nodes/aaaaaaaaaaaaaaaa");
  EXPECT_EQ((*fourth).path, "/state/nodes/aaaaaaaaaaaaaaaa-2");
  const JoinPlace bad{.state = "/nothing", .coordinator = kHere, .token = "nonsense"};
  EXPECT_EQ(take_node_directory(disk, bad).error().kind, ErrorKind::kRefused);
  EXPECT_FALSE(*disk.exists("/nothing"));
}

}  // namespace
}  // namespace gossamer::node
