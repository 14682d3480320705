// Words of a command, put together, and a step's file made by the program.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/cli/program.hpp"

namespace stowage::testing {

using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Where `stowage lower` has written the step.
inline std::string lowered(const TemporaryFolder& folder, const Words& how) {
  const std::string path = folder.file("step.json", "");
  const Outcome outcome = stowage_program(Words{"lower"} + how + Words{"-o", path});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return path;
}

}  // namespace stowage::testing
