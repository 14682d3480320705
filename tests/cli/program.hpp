// Runs the real program, as a user does, and keeps what it wrote where.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace stowage::testing {

struct Outcome {
  int exit_code = -1;  ///< 128 + the signal where one ended it
  std::string out;     ///< stdout
  std::string err;     ///< stderr
};

struct Circumstances {
  std::string input;                               ///< stdin
  std::map<std::string, std::string> environment;  ///< added to ours; "" unsets
};

/// `words` without the program's name.
[[nodiscard]] Outcome stowage_program(const std::vector<std::string>& words,
                                      const Circumstances& circumstances = {});

}  // namespace stowage::testing
