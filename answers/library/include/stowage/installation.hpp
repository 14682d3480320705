// Where Stowage's own files lie: the catalogues of models, cards and hosts, and the modules that it
// loads while it runs. find_package(stowage) says it to whoever includes a header of <stowage/>, so
// that nothing need be called; the variable STOWAGE_CONFIGS names other catalogues.
#pragma once

#include <string>

namespace stowage {

/// "0.1.0"
[[nodiscard]] std::string library_version();

/// From now on these files are looked for below `prefix` (PREFIX/share/stowage,
/// PREFIX/lib/stowage). Before the first question only; not for concurrent use.
void use_installation(std::string prefix);

#ifdef STOWAGE_INSTALLATION
/// The prefix that find_package found, said before main() begins.
inline const bool installation_is_known = (use_installation(STOWAGE_INSTALLATION), true);
#endif

}  // namespace stowage
