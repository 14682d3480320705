// read_source: the text of a file that a user names, as a SourceText.
//
// Whatever stands under the path, reading it ends: a file that is larger than its kind may be is
// refused before it is read, a pipe or a device is read up to that size, and a pipe that nobody
// writes to is given up after `pipe_patience`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

enum class FileKind : std::uint8_t { description, card, calibration, host, step, plan };

/// The largest text of a kind that is read.
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

}  // namespace stowage
