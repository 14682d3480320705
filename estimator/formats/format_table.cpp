#include <array>

#include "estimator/formats/import_model.hpp"
#include "estimator/huggingface/import_config.hpp"
#include "estimator/keras/keras_model.hpp"
#include "estimator/onnx/onnx_model.hpp"

namespace stowage {

std::span<const FormatRow> format_table() {
  static constexpr std::array rows{
      FormatRow{"ONNX", is_onnx_model, import_onnx_model},
      FormatRow{"Keras JSON", is_keras_model, import_keras_model},
      FormatRow{"Hugging Face", is_hugging_face_model, import_hugging_face_model},
  };
  return rows;
}

}  // namespace stowage
