// A cache of files in a folder of the user's own, kept from one run of the program to the next.
//
// A file is written under another name and then renamed, so that a reader never sees half of it; if
// two processes write it at once, the later one's file stays. Nothing here fails: a folder or a
// file that cannot be read, written or trusted counts as missing. A file is trusted only if it
// belongs to this user and nobody else may write it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stowage {

/// The folder stowage in XDG_CACHE_HOME, else in ~/.cache; "" where neither is an absolute path, or
/// where STOWAGE_NO_CACHE is set.
[[nodiscard]] std::string default_cache_folder();

/// None: the file is missing, larger than `largest` bytes, or not trusted. Precondition: `path`
/// lies in `folder`.
[[nodiscard]] std::optional<std::string> read_cached_file(const std::string& folder,
                                                          const std::string& path,
                                                          std::size_t largest);

/// Creates the folder where it is missing.
void write_cached_file(const std::string& folder, const std::string& path, std::string_view bytes);

/// Sets the file's time of use to now, at most once a day. drop_unused_files() goes by it.
void mark_cached_file_used(const std::string& path);

struct CachedFileNames {
  std::string_view prefix, suffix;
};
/// Removes all but the `most` files of such names that were used last, and the unfinished files of
/// processes that were killed.
void drop_unused_files(const std::string& folder, const CachedFileNames& names, std::size_t most);

}  // namespace stowage
