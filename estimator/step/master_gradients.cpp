// Gradients that are added up in float32 beside 16-bit parameters (MasterWeights): each backward
// pass still makes a 16-bit one, which is added to a float32 gradient as soon as it is whole and
// then let go. The float32 ones are buffers of the optimizer's, there for the whole step, as in
// Megatron's main_grad (megatron/core/distributed/param_and_grad_buffer.py) and DeepSpeed's
// bfloat16 optimizer. Our own executor's are there from then to the update.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

struct Sum {
  TensorView narrow;  ///< what backward makes
  TensorView wide;
  std::string name;
  std::size_t whole = 0;  ///< the node that makes `narrow` whole
};

// By StorageId of the narrow gradient; -1: of none.
std::vector<int> index_of(const std::vector<Sum>& sums, std::size_t storages) {
  std::vector<int> index(storages, -1);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    index[sums[i].narrow.storage.index()] = static_cast<int>(i);
  }
  return index;
}

}  // namespace

void keep_float32_gradients(StepGraph& graph, const ModelGraph& model) {
  std::vector<Sum> sums;
  for (std::size_t i = 0; i < graph.gradients.size(); ++i) {
    TensorView& gradient = graph.gradients[i];
    if (!gradient.storage.valid() || element_size(gradient.type) != 2) continue;
    TensorView wide = contiguous_view(StorageId{}, gradient.shape, DataType::float32);
    const std::string name = model.parameters[i].name + ".main_grad";
    graph.storages.push_back({.name = name,
                              .storage_class = StorageClass::gradient,
                              .persistence = graph.kernel_set().library_optimizer
                                                 ? Persistence::persistent
                                                 : Persistence::transient,
                              .bytes = byte_count(wide),
                              .op = graph.storage(gradient.storage).op,
                              .parameter = ParameterId::of(i)});
    wide.storage = StorageId::of(graph.storages.size() - 1);
    sums.push_back({.narrow = gradient, .wide = wide, .name = name});
    gradient = wide;
  }
  const std::vector<int> index = index_of(sums, graph.storages.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const TensorView& written : graph.nodes[n].writes) {
      const int sum = index[written.storage.index()];
      if (sum >= 0) sums[static_cast<std::size_t>(sum)].whole = n;
    }
  }
  std::vector<std::vector<const Sum*>> after(graph.nodes.size());
  for (const Sum& sum : sums) after[sum.whole].push_back(&sum);
  std::vector<KernelNode> nodes;
  nodes.reserve(graph.nodes.size() + sums.size());
  MicroBatch& part = graph.micro_batch;
  std::vector<NodeId> place(graph.nodes.size()), casts;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const OperatorId op = graph.nodes[n].op;
    place[n] = NodeId::of(nodes.size());
    nodes.push_back(std::move(graph.nodes[n]));
    for (const Sum* sum : after[n]) {
      casts.push_back(NodeId::of(nodes.size()));
      nodes.push_back({.name = sum->name,
                       .kernel = Kernel::cast,
                       .phase = Phase::backward,
                       .op = op,
                       .reads = {sum->narrow},
                       .writes = {sum->wide}});
    }
  }
  graph.nodes = std::move(nodes);
  for (NodeId& copy : part.first_only) copy = place[copy.index()];
  for (GradientArrival& arrival : part.arrivals) arrival.after = place[arrival.after.index()];
  const auto copies = static_cast<std::ptrdiff_t>(part.first_only.size());
  part.first_only.insert(part.first_only.end(), casts.begin(), casts.end());
  std::inplace_merge(part.first_only.begin(), part.first_only.begin() + copies,
                     part.first_only.end());
  part.end_node = NodeId::of(graph.nodes.size());
}

}  // namespace stowage
