#include "estimator/adapt/adapt.hpp"

#include <fmt/format.h>

#include "estimator/adapt/adapters.hpp"
#include "estimator/adapt/checkpointed_blocks.hpp"
#include "estimator/adapt/chunked_loss.hpp"
#include "estimator/adapt/quantised_base.hpp"
#include "estimator/adapt/written_attention.hpp"

namespace stowage {

Result<ModelGraph> adapted(ModelGraph model) {
  const FineTuning settings = model.fine_tuning;
  if (model.attention != AttentionForm::as_described && !has_fused_attention(model)) {
    return failure(
        fmt::format("the model '{}' has no scaled_dot_product_attention, which the "
                    "argument 'attention' is about",
                    model.name));
  }
  Result<ModelGraph> result = std::move(model);
  if (result->attention == AttentionForm::written_out) {
    result = with_written_out_attention(*std::move(result));
    if (!result) return result;
  }
  if (settings.base) {
    result = with_quantised_base(*std::move(result), *settings.base);
    if (!result) return result;
  } else if (settings.stored) {
    result = with_checkpoint_formats(*std::move(result), *settings.stored);
    if (!result) return result;
  }
  if (settings.lora) {
    result = with_adapters(*std::move(result), *settings.lora);
    if (!result) return result;
  }
  if (settings.chunked_loss) {
    result = with_chunked_loss(*std::move(result), *settings.chunked_loss);
    if (!result) return result;
  }
  if (settings.checkpoint) {
    result = with_checkpointed_blocks(*std::move(result), *settings.checkpoint);
  }
  return result;
}

Result<ModelGraph> load_adapted(SourceTextPtr source, const ModelOptions& options) {
  return load_model(std::move(source), options).and_then(adapted);
}

}  // namespace stowage
