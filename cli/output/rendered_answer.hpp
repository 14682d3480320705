// RenderedAnswer: what a command prints, and the exit code that says its yes or no.
#pragma once

#include "cli/output/exit_code.hpp"
#include "cli/output/report.hpp"

namespace stowage {

struct RenderedAnswer {
  Report report;
  ExitCode exit_code = ExitCode::yes;
};

}  // namespace stowage
