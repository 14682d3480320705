// What is to be said beside a comparison: each thing once, and of which models.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct ToldOfModel {
  std::string model;  ///< as typed, or a file of a folder
  Diagnostics told = {};
};

/// Errors before warnings and notes, each in the order of its first model. What several models
/// share, up to the place in a file, is said once: "a.json and 3 others: ...". One with a place of
/// its own, or that names its model, is left as it is; so are all where `models`, of the whole
/// comparison, are one.
[[nodiscard]] Diagnostics compared_notes(const std::vector<ToldOfModel>& told, std::size_t models);

}  // namespace stowage
