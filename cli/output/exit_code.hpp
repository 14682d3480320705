// The program's exit codes. docs/commands.md lists them.
#pragma once

namespace stowage {

enum class ExitCode : int {
  yes = 0,
  clean_no = 1,   ///< the question was answered with no: does not fit, invalid plan
  bad_input = 2,  ///< usage, a file with mistakes, or too large for this machine
  needs_gpu = 3,  ///< a GPU was asked for and there is none
  bug = 70,
  interrupted = 130,
};

}  // namespace stowage
