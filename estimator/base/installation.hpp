// Installation: where the parts of Stowage lie that are read or loaded while it runs: the
// catalogues of models, cards and hosts, and modules.
//
//   PREFIX/share/stowage/configs   the catalogues
//   PREFIX/lib/stowage             the modules
//
// The program finds them beside itself, in a build tree or installed, so that no path is compiled
// in and an installed tree can be moved. A program that links the library says where its package
// lies; find_package does that for it (<stowage/installation.hpp>).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stowage {

/// From now on the parts are looked for below `prefix` first. Before the first question only; not
/// for concurrent use.
void use_installation(std::string prefix);

/// Folders that may hold the catalogues, in the order in which they are looked at. Not all exist.
[[nodiscard]] std::vector<std::filesystem::path> config_folders();
/// Folders that may hold modules, as above.
[[nodiscard]] std::vector<std::filesystem::path> module_folders();

}  // namespace stowage
