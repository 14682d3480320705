// What a change adds: two checks beside each other, by class and by layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers/sizing/check.hpp"

namespace stowage {

struct CheckDiffQuestion {
  CheckQuestion before, after;
};

/// Bytes that are alive at each step's own peak.
struct ClassChange {
  StorageClass storage_class;
  Bytes before, after;
};

/// The same of a layer, by its name; 0 where a step has none of that name. "": of no layer.
struct LayerChange {
  std::string layer;
  Bytes before, after;
};

/// How far apart both are; never negative.
[[nodiscard]] Bytes distance(const LayerChange& change);

struct CheckDiffAnswer {
  CheckAnswer before, after;
  std::vector<ClassChange> classes;  ///< of which either step has bytes, in their usual order
  std::vector<LayerChange> layers;   ///< those that differ, the largest difference first
  std::int64_t same_layers = 0;      ///< those that do not
  Diagnostics notes;                 ///< of both, those that are alike once

  /// What the device has to hold more; negative: less.
  [[nodiscard]] Bytes added() const {
    return after.report.device_bytes - before.report.device_bytes;
  }
};

/// Errors: either question's, and of both where both have some.
[[nodiscard]] Result<CheckDiffAnswer> answer(const CheckDiffQuestion& question);

/// The comparison of two answers. O(n log n) in the tensors at both peaks.
[[nodiscard]] CheckDiffAnswer compared(CheckAnswer before, CheckAnswer after);

}  // namespace stowage
