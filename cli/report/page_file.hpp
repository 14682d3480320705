// The file of a page: what `--report FILE` names.
#pragma once

#include <string>

#include "cli/output/rendered_answer.hpp"
#include "cli/report/page.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// Asked before long work, while no other OutputFile is open. `path`, and `output`, the other file
/// that the command writes: "": none. Errors: a name that is no page's, the other file's name, one
/// that cannot be written.
[[nodiscard]] Result<void> check_page_file(const std::string& path, const std::string& output = {});

/// Writes the page whole or not at all, and says so in `answer`, which the content is of. Errors:
/// as OutputFile's.
[[nodiscard]] Result<void> write_page(const std::string& path, PageContent content,
                                      RenderedAnswer& answer);

}  // namespace stowage
