// Finds the format of a MODEL by its content, and the reader that makes a description of it.
//
// A format is a row of format_table(): a function that recognises it by the start of a file, and
// its reader. A MODEL that no row recognises is a description, the name of a shipped model, or a
// mistake.
#pragma once

#include <span>
#include <string_view>

#include "estimator/import/imported_model.hpp"

namespace stowage {

struct FormatRow {
  std::string_view name;  ///< "ONNX"
  bool (*recognises)(const FileHead& file_head) = nullptr;
  Result<ImportedModel> (*read)(const FileHead& file_head, const ImportOptions& options) = nullptr;
};
/// The formats, in the order in which they are tried.
[[nodiscard]] std::span<const FormatRow> format_table();

/// Reads the start of the file that `argument` names. If it cannot be read, `first_bytes` is empty;
/// the later reader reports the error.
[[nodiscard]] FileHead read_file_head(const std::string& argument);
/// The same for a text that is in memory or came through a pipe, as if it were a file.
[[nodiscard]] FileHead file_head_of(SourceTextPtr text);

/// nullopt: no format of the table recognises it.
[[nodiscard]] Result<std::optional<ImportedModel>> import_model(const FileHead& file_head,
                                                                const ImportOptions& options);

}  // namespace stowage
