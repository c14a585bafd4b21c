// SPDX-License-Identifier: Apache-2.0
#include "json/read_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace gossamer {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

std::string arrays(std::size_t levels) { return repeated("[", levels) + repeated("]", levels); }
std::string objects(std::size_t levels) { return repeated(R"({"a":)", levels) + "1" + repeated("}", levels); }

// A text of the allowed levels is read as the library reads it, whatever it is made of; order stays.
TEST(ReadJson, AsTheLibrary) {
  for (const std::string& text : {std::string("1"), std::string("null"), std::string(R"("[[[[")"),
                                  std::string(R"({"b":[1,{"a":-2.5}],"a":""})"), arrays(1),
                                  arrays(kMostJsonLevels), objects(kMostJsonLevels)}) {
    EXPECT_EQ(read_json<json>(text), json::parse(text)) << text;
    EXPECT_EQ(read_json<ordered_json>(text).dump(), ordered_json::parse(text).dump()) << text;
  }
}

// Many lists beside each other are no depth.
TEST(ReadJson, WideIsNotDeep) {
  EXPECT_EQ(read_json<json>("[" + repeated(arrays(kMostJsonLevels - 1) + ",", 1000) + "0]").size(), 1001U);
}

// One level more is an error, and so are as many as would end the stack, closed or not.
TEST(ReadJson, TooDeep) {
  for (const std::string& text :
       {arrays(kMostJsonLevels + 1), objects(kMostJsonLevels + 1), "[" + objects(kMostJsonLevels) + "]",
        arrays(1'000'000), objects(1'000'000), repeated("[", 1'000'000), repeated(R"([{"a":)", 500'000)}) {
    EXPECT_TRUE(read_json<json>(text).is_discarded()) << text.size();
    EXPECT_TRUE(read_json<ordered_json>(text).is_discarded()) << text.size();
  }
}

// What is no JSON is an error, and so is JSON with something behind it.
TEST(ReadJson, NoJson) {
  for (const char* text : {"", " ", "{", "[1,]", "nul", "{\"a\":1}}", "[] []", "\x80"}) {
    EXPECT_TRUE(read_json<json>(text).is_discarded()) << text;
  }
}

// A key that stands twice in one object is an error at any depth, in JSON and in CBOR. The same key in two
// objects is none. The reason names the key.
TEST(ReadJson, NoKeyTwice) {
  for (const char* text :
       {R"({"a":1,"b":2,"a":1})", R"([{"b":{"a":1,"\u0061":2}}])", R"({"a":{"a":1},"a":2})"}) {
    EXPECT_TRUE(read_json<json>(text).is_discarded()) << text;
    EXPECT_TRUE(read_json<ordered_json>(text).is_discarded()) << text;
    EXPECT_EQ(why_no_json(text), "the key 'a' twice in one object") << text;
  }
  for (const char* text : {R"({"a":{"a":1},"b":{"a":1}})", R"([{"a":1},{"a":2}])"}) {
    EXPECT_FALSE(read_json<json>(text).is_discarded()) << text;
    EXPECT_EQ(why_no_json(text), "");
  }
  const std::string twice =
      "\xA2\x61"
      "a\x01\x61"
      "a\x02";
  EXPECT_TRUE(read_cbor<json>(twice).is_discarded());
  EXPECT_EQ(why_no_json(""), "an empty text");
  EXPECT_EQ(why_no_json(arrays(kMostJsonLevels + 1)), "more than 32 levels");
  EXPECT_EQ(why_no_json("{\"a\":x}"), "no JSON, by byte 6");
}

// CBOR has the same limit, and its reader would otherwise recurse by itself.
TEST(ReadJson, Cbor) {
  const json value = json::parse(arrays(kMostJsonLevels));
  std::string bytes;
  json::to_cbor(value, nlohmann::detail::output_adapter<char>(bytes));
  EXPECT_EQ(read_cbor<json>(bytes), value);
  const std::string list_of_one = "\x81";
  EXPECT_TRUE(read_cbor<json>(list_of_one + bytes).is_discarded());
  EXPECT_TRUE(read_cbor<json>(repeated(list_of_one, 10'000'000)).is_discarded());
  EXPECT_TRUE(read_cbor<json>(bytes + bytes).is_discarded());
  EXPECT_TRUE(read_cbor<json>("").is_discarded());
}

// Claim: CBOR without lengths is none: byte strings, texts, arrays and objects of it, at any depth. What the
// library writes says all lengths.
TEST(ReadJson, CborSaysItsLengths) {
  const std::string list_of_one = "\x81";
  for (const char* head : {"\x5f", "\x7f", "\x9f", "\xbf"}) {
    EXPECT_TRUE(read_cbor<json>(repeated(head, 10'000'000)).is_discarded());
    EXPECT_TRUE(read_cbor<json>(list_of_one + repeated(head, 10'000'000)).is_discarded());
  }
  EXPECT_TRUE(read_cbor<json>("\x5f\x41x\xff").is_discarded());
  const std::vector<std::uint8_t> bytes(70'000, 0x5f);
  for (const json& one : {json(json::binary(bytes)), json(std::string(300, '\x7f')),
                          json{{"a", 1.5}, {"b", {-7, 1'000'000'000'000, nullptr, true}}}}) {
    std::string written;
    json::to_cbor(one, nlohmann::detail::output_adapter<char>(written));
    EXPECT_EQ(read_cbor<json>(written), one);
  }
}

}  // namespace
}  // namespace gossamer
