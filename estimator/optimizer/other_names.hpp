// Other names of optimizers: those of classes (torch.optim.AdamW, bnb.optim.PagedAdamW8bit) and of
// transformers' TrainingArguments (adamw_torch_fused).
#pragma once

#include <optional>
#include <string_view>

#include "estimator/optimizer/optimizer_settings.hpp"

namespace stowage {

struct OptimizerMeaning {
  std::string_view name;  ///< a row's or a preset's
  /// What the name says of it; `usual`: nothing.
  OptimizerImplementation implementation = OptimizerImplementation::usual;
};

/// What `name` means, in any case, with a module before it, and with '-', '_' or nothing between
/// its words; nullopt: no optimizer that is modelled.
[[nodiscard]] std::optional<OptimizerMeaning> optimizer_meant(std::string_view name);

}  // namespace stowage
