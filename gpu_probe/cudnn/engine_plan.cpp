#include "gpu_probe/cudnn/engine_plan.hpp"

namespace stowage {

CudnnDescriptor engine_configuration(const CudnnLibrary& library, const CudnnTarget& target,
                                     const CudnnDescriptor& graph, const EngineName& name) {
  CudnnDescriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, name.index);
  target.describe(engine, CUDNN_ATTR_ENGINE_DEVICEPROP);
  engine.finalize("an engine by its index");
  std::vector<CudnnDescriptor> knobs;
  for (const auto& [kind, value] : name.knobs) {
    CudnnDescriptor& knob = knobs.emplace_back(library, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, static_cast<int>(kind));
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    knob.finalize("a knob of an engine");
  }
  CudnnDescriptor configuration(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty()) configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::span(knobs));
  configuration.finalize("an engine's configuration");
  return configuration;
}

CudnnDescriptor unfinished_plan(const CudnnLibrary& library, const CudnnTarget& target,
                                const CudnnDescriptor& configuration) {
  CudnnDescriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle != nullptr) plan.set_handle(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  target.describe(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  return plan;
}

CudnnDescriptor engine_plan(const CudnnLibrary& library, const CudnnTarget& target,
                            const CudnnDescriptor& graph, const EngineName& name) {
  CudnnDescriptor plan =
      unfinished_plan(library, target, engine_configuration(library, target, graph, name));
  plan.finalize("an engine's execution plan");
  return plan;
}

CudnnDescriptor variant_pack(const CudnnLibrary& library, std::span<const std::int64_t> ids,
                             std::span<void* const> addresses, void* workspace) {
  CudnnDescriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set_pointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses);
  pack.set_pointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span(&workspace, 1));
  pack.finalize("the tensors of a graph");
  return pack;
}

std::int64_t workspace_of(const CudnnDescriptor& plan) {
  return plan.get_integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
}

}  // namespace stowage
