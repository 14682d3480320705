// What PyTorch said of a model (tests/reference/models), and ours to hold beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage::reference {

struct ReferenceModel {
  std::string file;  ///< without folder
  nlohmann::json json;
  std::int64_t batch = 0;
  std::string model;  ///< ours, in configs/models
};

/// Every committed reference file, sorted by name.
[[nodiscard]] std::vector<ReferenceModel> reference_models();

/// Our description under the reference's settings.
[[nodiscard]] ModelGraph our_model(const ReferenceModel& reference);

/// Our step at the reference's batch, without workspaces.
[[nodiscard]] SizedStep our_step(const ModelGraph& model, const ReferenceModel& reference,
                                 const OptimizerSettings& optimizer);

/// Sizes in bytes with how often each occurs.
using Multiset = std::map<std::int64_t, int>;

/// "12 x 4096, 1 x 512" of what `a` has and `b` lacks.
[[nodiscard]] std::string surplus(const Multiset& a, const Multiset& b);

}  // namespace stowage::reference
