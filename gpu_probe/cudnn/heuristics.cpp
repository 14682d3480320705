#include "gpu_probe/cudnn/heuristics.hpp"

#include <algorithm>

#include "gpu_probe/cudnn/engine_name.hpp"

namespace stowage {

bool is_allowed(const std::vector<cudnnBackendNumericalNote_t>& notes,
                const ConvolutionQuery& query) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::ranges::find(notes, note) != notes.end();
  };
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  if (query.settings.deterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  const bool fp32_alone = query.type == DataType::float32 && !query.settings.tf32;
  return !fp32_alone || !has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

std::vector<CudnnDescriptor> engine_configurations(const CudnnLibrary& library,
                                                   const CudnnTarget& target,
                                                   const CudnnDescriptor& graph,
                                                   cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  target.describe(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  heuristics.finalize("a heuristic query");
  return heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                    heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS));
}

CudnnDescriptor engine_of(const CudnnLibrary& library, const CudnnDescriptor& configuration) {
  CudnnDescriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  configuration.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  return engine;
}

std::string engine_name(const CudnnLibrary& library, const CudnnDescriptor& configuration,
                        const CudnnDescriptor& engine) {
  EngineName name{.version = library.version(),
                  .index = engine.get_integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64)};
  for (const CudnnDescriptor& knob : configuration.get_descriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, most_knobs)) {
    name.knobs.emplace_back(
        knob.get_integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE),
        knob.get_integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64));
  }
  return to_string(name);
}

}  // namespace stowage
