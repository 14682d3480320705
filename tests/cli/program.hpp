// Runs the real program, as a user does, and keeps what it wrote where.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
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
  /// The largest file that it may write and its address space, as ulimit -f and -v set them.
  std::optional<Bytes> largest_file = {}, address_space = {};
};

/// `words` without the program's name.
[[nodiscard]] Outcome stowage_program(const std::vector<std::string>& words,
                                      const Circumstances& circumstances = {});

}  // namespace stowage::testing
