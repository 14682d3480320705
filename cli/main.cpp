#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/commands/run.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/signals.hpp"
#include "cli/output/terminal.hpp"
#include "estimator/base/printable.hpp"

int main(int argc, char** argv) {
  stowage::install_signal_handlers();
  try {
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    return static_cast<int>(stowage::run_program(words));
  } catch (const std::bad_alloc&) {
    // No bug: what was asked for is too large for this machine. Nothing is allocated to say so.
    std::fputs("error: out of memory: the answer takes more than this machine gives stowage\n",
               stderr);
    return static_cast<int>(stowage::ExitCode::bad_input);
  } catch (const std::exception& error) {
    stowage::write_quietly(
        stderr,
        fmt::format("stowage: a bug in stowage: {}\n"
                    "  please report it with the command line and the model's description\n",
                    stowage::printable_text(error.what())));
    return static_cast<int>(stowage::ExitCode::bug);
  }
}
