#include <fmt/format.h>

#include <array>

#include "estimator/formats/import_model.hpp"
#include "estimator/huggingface/adapter_config.hpp"
#include "estimator/huggingface/import_config.hpp"
#include "estimator/keras/keras_model.hpp"
#include "estimator/onnx/onnx_model.hpp"
#include "estimator/weights/stored_weights.hpp"

namespace stowage {

namespace {

// No models: the files that a model's weights lie in.

bool is_weight_file(const FileHead& file_head) {
  return file_head.is_file &&
         (is_gguf(file_head.first_bytes) || is_safetensors(file_head.first_bytes, file_head.size));
}

Result<ImportedModel> refuse_weight_file(const FileHead& file_head, const ImportOptions&) {
  return failure(fmt::format("'{}' holds weights, and no network", file_head.argument),
                 "`stowage summary` prints what is in it; a model is described by the config.json "
                 "beside it");
}

}  // namespace

std::span<const FormatRow> format_table() {
  static constexpr std::array rows{
      FormatRow{"ONNX", is_onnx_model, import_onnx_model},
      FormatRow{"Keras JSON", is_keras_model, import_keras_model},
      FormatRow{"weights", is_weight_file, refuse_weight_file},
      FormatRow{"Hugging Face", is_hugging_face_model, import_hugging_face_model},
      FormatRow{"adapters", is_adapter_config, refuse_adapter_config},
  };
  return rows;
}

}  // namespace stowage
