#include "estimator/formats/import_model.hpp"

#include <filesystem>

#include "estimator/base/read_source.hpp"

namespace stowage {

FileHead read_file_head(const std::string& argument) {
  namespace fs = std::filesystem;
  FileHead file_head{.argument = argument};
  std::error_code code;
  file_head.is_folder = fs::is_directory(argument, code);
  file_head.is_file = fs::is_regular_file(argument, code);
  if (!file_head.is_file) return file_head;
  const auto size = fs::file_size(argument, code);
  if (!code) file_head.size = static_cast<std::int64_t>(size);
  file_head.first_bytes = read_file_start(argument, file_head_length).value_or("");
  return file_head;
}

FileHead file_head_of(SourceTextPtr text) {
  FileHead file_head{.argument = text->name,
                     .size = static_cast<std::int64_t>(text->text.size()),
                     .first_bytes = text->text.substr(0, file_head_length)};
  file_head.text = std::move(text);
  return file_head;
}

Result<std::optional<ImportedModel>> import_model(const FileHead& file_head,
                                                  const ImportOptions& options) {
  for (const FormatRow& format : format_table()) {
    if (!format.recognises(file_head)) continue;
    auto imported = format.read(file_head, options);
    if (!imported) return tl::unexpected(std::move(imported.error()));
    return *std::move(imported);
  }
  return std::nullopt;
}

}  // namespace stowage
