// SPDX-License-Identifier: Apache-2.0
#include "host/api/endpoint.h"

#include <gtest/gtest.h>

namespace gossamer::host {
namespace {

// What is written can be read, names and both kinds of addresses alike.
TEST(Endpoint, ReadsWhatItWrites) {
  for (const Endpoint& endpoint : {Endpoint{"localhost", 1}, Endpoint{"10.0.0.7", 65535}, Endpoint{"::1", 0},
                                   Endpoint{"node-3.lab", 8080}}) {
    const auto back = parse_endpoint(to_string(endpoint));
    ASSERT_TRUE(back.ok()) << to_string(endpoint);
    EXPECT_EQ(*back, endpoint);
  }
  EXPECT_EQ(to_string({"::1", 80}), "[::1]:80");
}

// Only what every machine calls itself by is loopback; names that begin alike are not.
TEST(Endpoint, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.0.1.1", "127.255.255.254", "::1", "localhost"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host :
       {"", "10.0.0.1", "128.0.0.1", "12.0.0.1", "127.example", "::11", "fe80::1", "localhost.example"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

// Anything else is the user's mistake, and the message quotes it.
TEST(Endpoint, RefusesTheRest) {
  for (const char* text : {"", ":", ":80", "host", "host:", "host:x", "host:80x", "host:-1", "host:65536",
                           "::1:80", "[::1]", "[]:80", "a b:80", "[::1]x:80", "http://host:80", "host: 80"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint.ok()) << text;
    EXPECT_EQ(endpoint.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(endpoint.error().got, "'" + std::string(text) + "'");
  }
}

}  // namespace
}  // namespace gossamer::host
