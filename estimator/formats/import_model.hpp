// Which format a MODEL has, by its content, and the reader that makes a description of it.
//
// A format is a row of format_table(): how it is recognised from its opening, and its reader. What
// no row recognises is a description, a name of the catalogue, or a mistake, as before.
#pragma once

#include <span>
#include <string_view>

#include "estimator/import/imported_model.hpp"

namespace stowage {

struct FormatRow {
  std::string_view name;  ///< "ONNX"
  bool (*recognises)(const Opening& opening) = nullptr;
  Result<ImportedModel> (*read)(const Opening& opening, const ImportOptions& options) = nullptr;
};
/// In the order in which they are asked.
[[nodiscard]] std::span<const FormatRow> format_table();

/// What stands under `argument`. A path that cannot be read has an empty head: whoever reads it
/// says why.
[[nodiscard]] Opening open_model(const std::string& argument);
/// As if `text` were a file: of a pipe, or in memory.
[[nodiscard]] Opening opening_of(SourceTextPtr text);

/// nullopt: of no format in the table.
[[nodiscard]] Result<std::optional<ImportedModel>> import_model(const Opening& opening,
                                                                const ImportOptions& options);

}  // namespace stowage
