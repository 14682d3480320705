// T5's buckets of relative positions.
#include "gpu_probe/kernels/bodies/relative_buckets.hpp"

#include "gpu_probe/kernels/rows/integers.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage::kernels {

Launches relative_buckets(const KernelCall& call, Arithmetic) {
  const auto& y = call.writes[0];
  require(y.shape.size() == 2, "buckets are [queries, keys], not {}", shape_text(y.shape));
  return {
      each_index(body::RelativeBuckets{any_integers(y), y.shape[1], integer(call, "buckets", 32),
                                       integer(call, "max_distance", 128),
                                       boolean(call, "bidirectional", true)},
                 count(y.shape))};
}

}  // namespace stowage::kernels
