#include "estimator/optimizer/optimizer_word.hpp"

#include <string_view>

#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

template <typename IsLike>
std::optional<std::string> first_name(const IsLike& is_like) {
  for (const std::string_view name : optimizer_names()) {
    if (is_like(*named_optimizer(name))) return std::string(name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> optimizer_name(const OptimizerSettings& settings) {
  return first_name([&](OptimizerSettings named) {
    named.implementation = settings.implementation;
    named.master_weights = settings.master_weights;
    return named == settings;
  });
}

std::string optimizer_word(const OptimizerSettings& settings) {
  const auto name = first_name([&](const OptimizerSettings& named) {
    return named.name == settings.name && (named.momentum > 0) == (settings.momentum > 0) &&
           named.nesterov == settings.nesterov && named.amsgrad == settings.amsgrad &&
           named.centered == settings.centered;
  });
  return name.value_or(settings.name);
}

}  // namespace stowage
