#include "estimator/rewrite/packed_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

struct Packed {
  TensorView gradient;  ///< of the replica
  StorageId summed;     ///< of all replicas
};

class GradientPacks {
 public:
  explicit GradientPacks(StepGraph& step) : step_(step) {}

  /// Makes the nodes, whose ids follow those of the step, and adds their storages.
  std::vector<KernelNode> make() {
    std::map<DataType, std::vector<TensorView>> by_type;
    for (const TensorView& gradient : step_.gradients) {
      if (gradient.storage.valid()) by_type[gradient.type].push_back(gradient);
    }
    std::vector<KernelNode> nodes;
    for (const auto& [type, gradients] : by_type) add_pack(type, gradients, nodes);
    return nodes;
  }

  /// By the replica's gradient: the unpacked sum that the updates read instead.
  [[nodiscard]] const std::map<StorageId, StorageId>& summed() const { return summed_; }

 private:
  StorageId add_storage(std::string name, Affine bytes) {
    step_.storages.push_back(
        {.name = std::move(name), .storage_class = StorageClass::gradient, .bytes = bytes});
    return StorageId::of(step_.storages.size() - 1);
  }

  void add_pack(DataType type, const std::vector<TensorView>& gradients,
                std::vector<KernelNode>& nodes) {
    const std::string suffix(to_string(type));
    std::vector<TensorView> parts;
    Affine count = 0;
    for (const TensorView& gradient : gradients) {
      parts.push_back(contiguous_view(gradient.storage, {element_count(gradient.shape)}, type));
      count = count + element_count(gradient.shape);
    }
    const TensorView pack = contiguous_view(
        add_storage("all_reduce.pack." + suffix, count * Affine(element_size(type))), {count},
        type);
    Attributes axis;
    axis.set("axis", std::int64_t{0});
    nodes.push_back({.name = "all_reduce.pack." + suffix,
                     .kernel = Kernel::concatenate,
                     .phase = Phase::update,
                     .reads = std::move(parts),
                     .writes = {pack},
                     .attributes = axis});
    Affine start = 0;
    for (const TensorView& gradient : gradients) {
      const std::string name = step_.storage(gradient.storage).name + ".summed";
      const Affine elements = element_count(gradient.shape);
      const StorageId summed = add_storage(name, elements * Affine(element_size(type)));
      Attributes place = axis;
      place.set("start", start.constant);
      nodes.push_back({.name = "all_reduce.unpack." + step_.storage(gradient.storage).name,
                       .kernel = Kernel::slice,
                       .phase = Phase::update,
                       .reads = {pack},
                       .writes = {contiguous_view(summed, {elements}, type)},
                       .attributes = std::move(place)});
      summed_.emplace(gradient.storage, summed);
      start = start + elements;
    }
  }

  StepGraph& step_;
  std::map<StorageId, StorageId> summed_;
};

}  // namespace

Result<StepGraph> with_packed_gradients(StepGraph step) {
  if (step.settings.early_updates) {
    return failure("updates that follow each gradient leave no gradients to be summed together");
  }
  const auto first_update = std::ranges::find(step.nodes, Phase::update, &KernelNode::phase);
  const auto before = static_cast<std::size_t>(first_update - step.nodes.begin());
  GradientPacks packs(step);
  std::vector<KernelNode> made = packs.make();
  const std::size_t added = made.size();
  for (std::size_t i = before; i < step.nodes.size(); ++i) {
    for (TensorView& view : step.nodes[i].reads) {
      const auto summed = packs.summed().find(view.storage);
      if (summed != packs.summed().end()) view.storage = summed->second;
    }
  }
  std::vector<NodeId> place;
  for (std::size_t i = 0; i <= step.nodes.size(); ++i) {
    place.push_back(NodeId::of(i < before ? i : i + added));
  }
  step.nodes.insert(step.nodes.begin() + static_cast<std::ptrdiff_t>(before),
                    std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  const NodeId end = step.micro_batch.end_node;
  renumber_nodes(step, place);
  if (end.index() == before)
    step.micro_batch.end_node = end;  // half-open: what comes behind is new
  return step;
}

}  // namespace stowage
