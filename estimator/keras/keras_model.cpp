#include "estimator/keras/keras_model.hpp"

namespace stowage {

bool is_keras_model(const Opening&) { return false; }
Result<ImportedModel> import_keras_model(const Opening&, const ImportOptions&) { return {}; }

}  // namespace stowage
