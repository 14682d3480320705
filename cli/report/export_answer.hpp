// How an export is shown: its file, and beside that what it takes, by our count, and what it leaves
// unsaid.
#pragma once

#include <string>

#include "answers/exporting/export.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// The file, with options in the place of settings' names.
[[nodiscard]] std::string exported_text(const ExportAnswer& found);

/// `has_file`: the text goes into a file, so that the rest is the report; else stdout has the text,
/// and the rest is said as notes. Exit code 1: what was exported does not fit.
[[nodiscard]] RenderedAnswer rendered(const ExportAnswer& found, bool has_file);

}  // namespace stowage
