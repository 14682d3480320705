// Tests that cannot run here: they say so and why, and the test program repeats it at its end and
// exits with 77, which CTest reports as skipped.
#pragma once

#include <string>

namespace stowage::testing {

inline constexpr int skipped_exit_code = 77;

/// The rest of the test case that runs is skipped. The caller returns.
void skip(const std::string& reason);

}  // namespace stowage::testing
