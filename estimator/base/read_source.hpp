// Reading files: read_source for the text of one that a user names, read_file_start for the first
// bytes of any other.
//
// Whatever stands under the path, reading it ends: a file that is larger than its kind may be is
// refused before it is read, a pipe or a device is read up to that size, and a pipe that nobody
// writes to is given up after `pipe_patience`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

enum class FileKind : std::uint8_t {
  description,
  card,
  calibration,
  host,
  step,
  plan,
  model,  ///< a description or a step file, which is told by its first bytes
};

/// The largest text of a kind that is read; of a model it is a step file's.
[[nodiscard]] Bytes largest_file(FileKind kind);

enum class FileTypes : std::uint8_t {
  regular,  ///< for paths that come out of a file
  any,      ///< pipes and devices too, for paths that the user typed: check <(generate)
};

inline constexpr std::chrono::seconds pipe_patience{2};

/// The file at `path`, or stdin for "-".
/// Errors: it cannot be opened or read, is a folder, is not of `types`, is a pipe without a writer,
/// or is larger than largest_file(kind).
[[nodiscard]] Result<SourceTextPtr> read_source(const std::string& path, FileKind kind,
                                                FileTypes types = FileTypes::any);

/// The first `count` bytes of a regular file, fewer if it is shorter. None: it cannot be opened or
/// read, or is something else: no pipe or device is waited for.
[[nodiscard]] std::optional<std::string> read_file_start(const std::string& path,
                                                         std::size_t count);

}  // namespace stowage
