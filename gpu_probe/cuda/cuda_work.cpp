#include "gpu_probe/cuda/cuda_work.hpp"

#include "gpu_probe/cuda/convolution_call.hpp"
#include "gpu_probe/cudnn/engine_name.hpp"
#include "gpu_probe/kernels/rows/attention_call.hpp"
#include "gpu_probe/kernels/rows/products.hpp"
#include "gpu_probe/kernels/rows/rnn_work.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

CudaWork cuda_work(const Plan& plan) {
  CudaWork work;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const Kernel kernel = plan.step.graph->nodes[i].kernel;
    if (device_of(plan, plan.nodes[i]) == Device::cpu) {
      ++work.cpu;
    } else if (kernels::is_attention(kernel) && parse_engine_name(plan.nodes[i].engine)) {
      ++work.cudnn;
    } else if (kernels::has_row(kernel)) {
      ++work.own;
    } else if (kernels::is_product(kernel) || kernels::is_recurrent(kernel)) {
      ++work.cublas;
    } else if (is_convolution(kernel)) {
      ++work.cudnn;
    } else {
      ++work.none;
    }
  }
  return work;
}

}  // namespace stowage
