// A small model with each loss, as a description.
#pragma once

#include <span>
#include <string>

namespace stowage::test {

struct LossModel {
  const char* name;
  const char* target;  ///< the input's shape and type
  const char* layers;  ///< behind `head`, [batch, 4]
  const char* loss;
};

[[nodiscard]] std::span<const LossModel> loss_models();
[[nodiscard]] std::string loss_description(const LossModel& model);

}  // namespace stowage::test
