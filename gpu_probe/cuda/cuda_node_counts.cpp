#include "gpu_probe/cuda/cuda_node_counts.hpp"

#include <string>

#include "gpu_probe/cuda/convolution_call.hpp"
#include "gpu_probe/cudnn/engine_name.hpp"
#include "gpu_probe/kernels/rows/attention_call.hpp"
#include "gpu_probe/kernels/rows/products.hpp"
#include "gpu_probe/kernels/rows/rnn_work.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

/// The count that a node on the GPU belongs to.
std::int64_t CudaNodeCounts::*count_of(Kernel kernel, const std::string& engine) {
  const bool is_cudnns_attention = kernels::is_attention(kernel) && parse_engine_name(engine);
  if (is_cudnns_attention || is_convolution(kernel)) return &CudaNodeCounts::cudnn;
  if (kernels::is_product(kernel) || kernels::is_recurrent(kernel)) return &CudaNodeCounts::cublas;
  return kernels::has_row(kernel) ? &CudaNodeCounts::own : &CudaNodeCounts::none;
}

}  // namespace

CudaNodeCounts count_cuda_nodes(const Plan& plan) {
  CudaNodeCounts work;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (device_of(plan, plan.nodes[i]) == Device::cpu) {
      ++work.cpu;
    } else {
      ++(work.*count_of(plan.step.graph->nodes[i].kernel, plan.nodes[i].engine));
    }
  }
  return work;
}

}  // namespace stowage
