// Predicates that patterns use on layers: a layer's row and its attributes.
#pragma once

#include <cmath>
#include <optional>
#include <string_view>

#include "estimator/import/layer_list.hpp"

namespace stowage {

inline bool nearly(double a, double b) {
  constexpr double tolerance = 1e-3;  // 16-bit models have rounded constants
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

inline double given_real(const ImportedLayer& layer, std::string_view name, double otherwise) {
  for (const auto& [key, value] : layer.given) {
    if (key != name) continue;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      return static_cast<double>(*integer);
    }
  }
  return otherwise;
}

inline bool given_flag(const ImportedLayer& layer, std::string_view name, bool otherwise) {
  for (const auto& [key, value] : layer.given) {
    if (key == name && std::holds_alternative<bool>(value)) return std::get<bool>(value);
  }
  return otherwise;
}

/// Empty: it is not given.
inline std::string given_text(const ImportedLayer& layer, std::string_view name) {
  for (const auto& [key, value] : layer.given) {
    if (key != name) continue;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
  }
  return {};
}

inline std::vector<std::int64_t> given_integers(const ImportedLayer& layer, std::string_view name) {
  for (const auto& [key, value] : layer.given) {
    if (key != name) continue;
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  }
  return {};
}

inline bool is_learned_scale(const ImportedLayer& layer) {
  return layer.is("scale") && given_flag(layer, "learned", false);
}

/// The factor of a layer that computes x * factor.
inline std::optional<double> factor_of(const ImportedLayer& layer) {
  if (!layer.is("scale") || is_learned_scale(layer)) return std::nullopt;
  if (given_real(layer, "offset", 0) != 0) return std::nullopt;
  return given_real(layer, "factor", 1);
}

/// The offset of a layer that computes x + offset.
inline std::optional<double> offset_of(const ImportedLayer& layer) {
  if (!layer.is("scale") || is_learned_scale(layer)) return std::nullopt;
  if (given_real(layer, "factor", 1) != 1) return std::nullopt;
  return given_real(layer, "offset", 0);
}

/// Whether the layer is the catalogue's `row`, or the foreign operator `op`.
inline bool is_function(const ImportedLayer& layer, std::string_view row, std::string_view op) {
  return layer.is(row) || layer.foreign == op;
}

}  // namespace stowage
