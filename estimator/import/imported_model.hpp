// What every reader of a foreign format takes and gives: see CONTRIBUTING.md, "Adding an importer".
//
//   Opening + ImportOptions -> ImportedModel, whose description load_model reads
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// What is known of a MODEL before anyone has decided what it is.
struct Opening {
  std::string argument;  ///< as typed: a path, "-", or any other word
  bool is_file = false;  ///< a regular file
  bool is_folder = false;
  std::int64_t size = 0;    ///< of a regular file or of `text`, in bytes
  std::string head = {};    ///< its first opening_length bytes, or all of them
  SourceTextPtr text = {};  ///< all of it, where it came through a pipe; else null
};
inline constexpr std::size_t opening_length = std::size_t{64} << 10;

/// What a user says beside the file.
struct ImportOptions {
  std::optional<std::int64_t> seq;
  /// Values of symbols: of named dimensions, of a description's arguments.
  std::map<std::string, std::string> values = {};
  std::optional<std::string> loss = {};  ///< a catalogue row; absent: the reader chooses
  bool allow_unknown = false;            ///< operators of no row are counted by their outputs
};

struct ImportedModel {
  SourceTextPtr description;  ///< docs/model-description.md; named after the file
  /// What was assumed, as notes and warnings.
  Diagnostics notes = {};
  /// Whether the description has symbols and arguments of its own, so that load_model takes
  /// `seq` and `values` once more. Else they are in its numbers already.
  bool takes_values = false;
};

}  // namespace stowage
