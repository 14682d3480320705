#include "estimator/rewrite/host_copies.hpp"

#include <string>
#include <utility>

#include "estimator/step/offloaded_bytes.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

KernelNode host_copy(const StepGraph& step, StorageId of, std::string name, std::string_view kernel,
                     Phase phase) {
  return {.name = std::move(name),
          .kernel = Kernel::foreign,
          .phase = phase,
          .op = step.storage(of).op,
          .foreign_kernel = Shared<std::string>(std::string(kernel))};
}

}  // namespace

TensorView whole_storage(const StepGraph& step, StorageId storage) {
  return contiguous_view(storage, {step.storage(storage).bytes}, DataType::uint8);
}

KernelNode copy_to_host(const StepGraph& step, StorageId from, std::string_view owner,
                        Phase phase) {
  KernelNode node = host_copy(step, from, dotted(owner, "to_host"), offload_kernel, phase);
  node.reads = {whole_storage(step, from)};
  return node;
}

KernelNode copy_from_host(const StepGraph& step, StorageId to, std::string_view owner,
                          Phase phase) {
  KernelNode node = host_copy(step, to, dotted(owner, "from_host"), fetch_kernel, phase);
  node.writes = {whole_storage(step, to)};
  return node;
}

}  // namespace stowage
