#include "tests/support/source_directory.hpp"

namespace stowage::testing {

std::string source_path(std::string_view path) { return STOWAGE_SOURCE_DIR + std::string(path); }

}  // namespace stowage::testing
