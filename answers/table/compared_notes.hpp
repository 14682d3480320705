// What is to be said beside a table: each thing once, and of which models.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct NotesOfModel {
  std::string model;  ///< as asked for, or a file of a folder
  Diagnostics notes = {};
};

/// Errors before warnings and notes, each in the order of its first model. What several models
/// share, up to the place in a file, is said once: "a.json and 3 others: ...". One with a place of
/// its own, or that names its model, is left as it is; so are all where `models`, of the whole
/// table, are one.
[[nodiscard]] Diagnostics compared_notes(const std::vector<NotesOfModel>& by_model,
                                         std::size_t models);

}  // namespace stowage
