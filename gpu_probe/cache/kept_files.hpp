// Files that are kept from one run to the next, in a folder of the user's own.
//
// A file is replaced whole (a new one, renamed), so that a reader never sees half of it; of two
// that write at once the later one's stands. Nothing here fails: a folder or a file that cannot be
// read, written or believed is as if there were none. A file is read only where it belongs to this
// user and no one else may write it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stowage {

/// XDG_CACHE_HOME, else ~/.cache, with /stowage; "" where neither is an absolute path, or where
/// STOWAGE_NO_CACHE is set.
[[nodiscard]] std::string default_cache_folder();

/// None: the file is not there, larger than `largest` bytes, or not to be believed. Precondition:
/// `path` lies in `folder`.
[[nodiscard]] std::optional<std::string> read_kept(const std::string& folder,
                                                   const std::string& path, std::size_t largest);

/// Makes the folder where it is missing.
void keep(const std::string& folder, const std::string& path, std::string_view bytes);

/// Marks a file as in use, once a day at most, so that it is the last to be dropped.
void touch_kept(const std::string& path);

struct KeptNames {
  std::string_view prefix, suffix;
};
/// Drops files of such names that were longest unused, beyond `most`, and what a killed writer
/// left.
void tidy_kept(const std::string& folder, const KeptNames& names, std::size_t most);

}  // namespace stowage
