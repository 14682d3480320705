// The input and output types of every importer: see CONTRIBUTING.md, "Adding an importer".
//
//   FileHead + ImportOptions -> ImportedModel, whose description load_model reads
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct CheckpointFormats;  // model/checkpoint_formats.hpp

/// The argument MODEL and the start of its file, from which its format is recognised.
struct FileHead {
  std::string argument;  ///< as typed: a path, "-", or any other word
  bool is_file = false;  ///< a regular file
  bool is_folder = false;
  std::int64_t size = 0;         ///< of a regular file or of `text`, in bytes
  std::string first_bytes = {};  ///< its first file_head_length bytes, or all of a shorter file
  SourceTextPtr text = {};       ///< the whole text if it came through a pipe; else null
};
inline constexpr std::size_t file_head_length = std::size_t{64} << 10;

/// The user's settings for an import.
struct ImportOptions {
  std::optional<std::int64_t> seq;
  /// Values of named dimensions and of a description's arguments.
  std::map<std::string, std::string> values = {};
  std::optional<std::string> loss = {};  ///< a catalogue row; absent: the reader chooses
  bool allow_unknown = false;  ///< count operators without a catalogue row by their outputs
};

struct ImportedModel {
  SourceTextPtr description;  ///< docs/model-description.md; named after the file
  /// Notes and warnings that say what was assumed.
  Diagnostics notes = {};
  /// Whether the description has symbols and arguments, so that load_model needs `seq` and `values`
  /// again. False: its numbers already contain them.
  bool takes_values = false;
  /// How the checkpoint's weights are quantised, for load_model; null: not.
  std::shared_ptr<const CheckpointFormats> stored = {};
};

}  // namespace stowage
