#include "estimator/formats/import_model.hpp"

#include <filesystem>
#include <fstream>

namespace stowage {

Opening open_model(const std::string& argument) {
  namespace fs = std::filesystem;
  Opening opening{.argument = argument};
  std::error_code code;
  opening.is_folder = fs::is_directory(argument, code);
  opening.is_file = fs::is_regular_file(argument, code);
  if (!opening.is_file) return opening;
  const auto size = fs::file_size(argument, code);
  if (!code) opening.size = static_cast<std::int64_t>(size);
  std::ifstream file(argument, std::ios::binary);
  opening.head.resize(opening_length);
  file.read(opening.head.data(), static_cast<std::streamsize>(opening.head.size()));
  opening.head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return opening;
}

Opening opening_of(SourceTextPtr text) {
  Opening opening{.argument = text->name,
                  .size = static_cast<std::int64_t>(text->text.size()),
                  .head = text->text.substr(0, opening_length)};
  opening.text = std::move(text);
  return opening;
}

Result<std::optional<ImportedModel>> import_model(const Opening& opening,
                                                  const ImportOptions& options) {
  for (const FormatRow& format : format_table()) {
    if (!format.recognises(opening)) continue;
    auto imported = format.read(opening, options);
    if (!imported) return tl::unexpected(std::move(imported.error()));
    return *std::move(imported);
  }
  return std::nullopt;
}

}  // namespace stowage
