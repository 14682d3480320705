#include "gpu_probe/kernels/rows/update_call.hpp"

namespace stowage::kernels {

void require_update_in_place(const KernelCall& call) {
  require(call.reads.size() >= 2 && call.writes.size() + 1 == call.reads.size(),
          "reads {} and writes {} tensors; all but the gradient are updated", call.reads.size(),
          call.writes.size());
  require_same_shape("the gradient", call.reads[1], call.reads[0]);
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    const TensorArgument& read = call.reads[i == 0 ? 0 : i + 1];
    require(call.writes[i].data == read.data, "write {} is not in place", i);
    require_same_shape(fmt::format("write {}", i), call.writes[i], read);
  }
}

void require_states(const KernelCall& call, std::size_t states) {
  require_writes(call, states + 1);
  for (std::size_t i = 0; i < states; ++i) {
    require_same_shape(fmt::format("state {}", i), call.reads[i + 2], call.reads[0]);
  }
}

}  // namespace stowage::kernels
