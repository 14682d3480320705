#include "estimator/memory/products_by_rows.hpp"

#include <optional>
#include <string_view>
#include <variant>

namespace stowage {

namespace {

/// A step's file may say anything under that name.
std::optional<std::int64_t> row_limit(const KernelNode& node, std::string_view attribute) {
  for (const auto& [key, value] : node.attributes.entries()) {
    if (key != attribute) continue;
    const auto* limit = std::get_if<std::int64_t>(&value);
    return limit == nullptr ? std::nullopt : std::optional(*limit);
  }
  return std::nullopt;
}

/// In floating point, which no file's sizes overflow.
double rows_of(const KernelNode& node, std::int64_t batch) {
  double rows = 1;
  const Shape& shape = node.reads.front().shape;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i].real_at(batch);
  return rows;
}

}  // namespace

std::vector<bool> unmade_storages(const StepGraph& graph, std::int64_t batch) {
  std::vector<bool> unmade;
  const auto leave_out = [&](StorageId id) {
    if (graph.storage(id).persistence != Persistence::transient)
      return;  // a weight is always there
    unmade.resize(graph.storages.size());
    unmade[id.index()] = true;
  };
  for (const KernelNode& node : graph.nodes) {
    const bool is_product = node.kernel == Kernel::linear_forward;
    if ((!is_product && node.kernel != Kernel::int8_product) || node.reads.size() < 2) continue;
    const auto limit = row_limit(node, is_product ? "fused_rows" : "float_rows");
    if (!limit) continue;
    const bool few = rows_of(node, batch) <= static_cast<double>(*limit);
    if (few != is_product) continue;
    if (is_product) leave_out(node.reads[1].storage);
    for (const StorageId id : is_product ? node.holds : node.temporaries) leave_out(id);
  }
  return unmade;
}

}  // namespace stowage
