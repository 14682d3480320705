#include "gpu_probe/cuda/cudnn_convolutions.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "gpu_probe/cudnn/engine_plan.hpp"
#include "gpu_probe/cudnn/heuristics.hpp"
#include "gpu_probe/cudnn/operation_graph.hpp"

namespace stowage {

CudnnDescriptor CudnnConvolutions::first_that_fits(const ConvolutionQuery& query,
                                                   const CudnnDescriptor& graph, Bytes workspace) {
  const CudnnLibrary& library = cudnn_.library();
  for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const CudnnDescriptor& configuration :
         engine_configurations(library, cudnn_.target(), graph, mode)) {
      const CudnnDescriptor engine = engine_of(library, configuration);
      if (!is_allowed(engine.get_notes(), query)) continue;
      CudnnDescriptor plan = unfinished_plan(library, cudnn_.target(), configuration);
      if (!plan.try_finalize() || Bytes(workspace_of(plan)) > workspace) continue;
      return plan;
    }
  }
  throw LibraryFailure(
      fmt::format("cuDNN {} has no engine here for a convolution with a workspace of {}",
                  library.version(), format_bytes(workspace)));
}

CudnnDescriptor CudnnConvolutions::plan_of(const ConvolutionQuery& query, const KernelCall& call,
                                           const CudnnDescriptor& graph) {
  const auto name = parse_engine_name(call.engine);
  if (!name) return first_that_fits(query, graph, call.workspace_bytes);
  if (name->version != cudnn_.library().version()) {
    remarks_.add(fmt::format("the plan's engines are of cuDNN {}, this is {}: it was asked again",
                             name->version, cudnn_.library().version()));
    return first_that_fits(query, graph, call.workspace_bytes);
  }
  try {
    CudnnDescriptor plan = engine_plan(cudnn_.library(), cudnn_.target(), graph, *name);
    if (Bytes(workspace_of(plan)) <= call.workspace_bytes) return plan;
    remarks_.add(fmt::format(
        "the engine '{}' takes {} here and {} in the plan: cuDNN was asked again", call.engine,
        format_bytes(Bytes(workspace_of(plan))), format_bytes(call.workspace_bytes)));
  } catch (const LibraryFailure& refusal) {
    remarks_.add(fmt::format("the engine '{}' is not to be had here ({}): cuDNN was asked again",
                             call.engine, refusal.what()));
  }
  return first_that_fits(query, graph, call.workspace_bytes);
}

const CudnnPlan& CudnnConvolutions::chosen(const ConvolutionQuery& query, const KernelCall& call) {
  Question question{query, call.engine, call.workspace_bytes.count()};
  const auto found = chosen_.find(question);
  if (found != chosen_.end()) return found->second;
  CudnnDescriptor graph = convolution_graph(cudnn_.library(), query, cudnn_.target());
  CudnnDescriptor plan = plan_of(query, call, graph);
  return chosen_.emplace(std::move(question), CudnnPlan{std::move(graph), std::move(plan)})
      .first->second;
}

void CudnnConvolutions::execute(const CudnnPlan& chosen, const CalledConvolution& called,
                                const KernelCall& call, void* stream) {
  const std::array<std::int64_t, 3> ids{id_of_x, id_of_w, id_of_y};
  const std::array<void*, 3> data{called.x, called.w, called.y};
  const CudnnDescriptor pack = variant_pack(cudnn_.library(), ids, data, call.workspace);
  cudnn_.execute(chosen.plan, pack, stream);
}

Result<void> CudnnConvolutions::run(const CalledConvolution& called, const KernelCall& call,
                                    void* stream) {
  try {
    execute(chosen(called.query, call), called, call, stream);
    return {};
  } catch (const LibraryFailure& error) {
    return failure(error.what());
  }
}

}  // namespace stowage
