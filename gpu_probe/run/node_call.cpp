#include "gpu_probe/run/node_call.hpp"

#include <algorithm>
#include <cassert>

namespace stowage {
namespace {

std::vector<StorageId> storages_of(const std::vector<TensorView>& views) {
  std::vector<StorageId> storages;
  for (const TensorView& view : views) storages.push_back(view.storage);
  std::sort(storages.begin(), storages.end());
  storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
  return storages;
}

}  // namespace

NodeArguments arguments_of(const KernelNode& node, std::int64_t batch,
                           const std::function<std::byte*(StorageId)>& address) {
  const auto argument = [&](const TensorView& view) {
    assert(view.offset == Affine(0) && view.strides == contiguous_strides(view.shape));
    return TensorArgument{address(view.storage), view.type, at_batch(view.shape, batch)};
  };
  NodeArguments arguments;
  for (const TensorView& view : node.reads) arguments.reads.push_back(argument(view));
  for (const TensorView& view : node.writes) arguments.writes.push_back(argument(view));
  return arguments;
}

Attributes attributes_in_step(const KernelNode& node, std::int64_t number) {
  constexpr std::int64_t seeds_apart = 1'000'003;  // larger than the difference of two nodes' seeds
  Attributes attributes = node.attributes;
  if (number == 1) return attributes;
  if (node.phase == Phase::update) attributes.set("step", number);
  if (attributes.has("seed")) {
    attributes.set("seed", attributes.integer("seed") + (number - 1) * seeds_apart);
  }
  return attributes;
}

std::vector<StorageId> storages_read(const KernelNode& node) { return storages_of(node.reads); }
std::vector<StorageId> storages_written(const KernelNode& node) { return storages_of(node.writes); }

}  // namespace stowage
