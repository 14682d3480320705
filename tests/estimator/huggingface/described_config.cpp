#include "tests/estimator/huggingface/described_config.hpp"

#include <stdexcept>

#include "estimator/huggingface/import_config.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::testing {

ModelGraph hugging_face_model(const std::string& folder, const ImportOptions& options) {
  const auto imported = import_model(read_file_head(source_path("/tests/hf/") + folder), options);
  if (!imported) throw std::runtime_error(render(imported.error()));
  auto model =
      load_model(imported->value().description, {.seq = options.seq, .arguments = options.values});
  if (!model) throw std::runtime_error(render(model.error()));
  return *std::move(model);
}

Result<ImportedModel> imported_text(const std::string& text, const ImportOptions& options) {
  const auto source = std::make_shared<const SourceText>(SourceText{"config.json", text});
  return import_hugging_face_model(file_head_of(source), options);
}

}  // namespace stowage::testing
