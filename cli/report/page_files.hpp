// The parts of the pages that `--report` writes (cli/report/page/), embedded in the program.
#pragma once

#include <span>

namespace stowage {

struct PageFile {
  const char* name;  ///< "page.css"
  const char* text;
};
/// In the order in which scripts are run. Defined in a source that the build writes
/// (cmake/embed_sources.cmake).
[[nodiscard]] std::span<const PageFile> page_files();

}  // namespace stowage
