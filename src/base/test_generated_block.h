// SPDX-License-Identifier: Apache-2.0
//
// Tests only: blocks of pages that the code knows better, as tables of states. A block stands between the
// lines <!-- NAME --> and <!-- /NAME -->. Thread rule: any thread.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace gossamer {

struct GeneratedBlock {
  std::string page;  // path of the file
  std::string name;
  std::string text;  // what the block should say, whole lines
};

// Empty if the page has the block with this text. Otherwise it says how to put the text there: the page with
// it is written into the directory of temporary files.
inline std::string block_difference(const GeneratedBlock& block) {
  std::ifstream file(block.page);
  std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string opens = fmt::format("<!-- {} -->\n", block.name);
  const std::size_t begin = page.find(opens);
  const std::size_t end = page.find(fmt::format("<!-- /{} -->\n", block.name));
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return fmt::format("{} has no block {}", block.page, block.name);
  const std::size_t first = begin + opens.size();
  if (page.substr(first, end - first) == block.text) return "";
  page.replace(first, end - first, block.text);
  const std::string mended = ::testing::TempDir() + block.name + ".md";
  std::ofstream(mended) << page;
  return fmt::format("the page says otherwise than the code; if the code is right: cp {} {}", mended,
                     block.page);
}

}  // namespace gossamer
