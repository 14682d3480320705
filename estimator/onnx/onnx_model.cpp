#include "estimator/onnx/onnx_model.hpp"

namespace stowage {

bool is_onnx_model(const Opening&) { return false; }
Result<ImportedModel> import_onnx_model(const Opening&, const ImportOptions&) { return {}; }

}  // namespace stowage
