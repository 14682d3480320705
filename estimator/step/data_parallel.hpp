// DataParallel: how many GPUs train the model together, and what each of them keeps of it.
#pragma once

#include <compare>

namespace stowage {

/// A replica on each GPU (PyTorch's DistributedDataParallel), or what DeepSpeed's ZeRO leaves of
/// one: from stage 1 on each keeps its share of the optimizer's state, from 2 on of the gradients
/// too, in 3 of the parameters as well (Rajbhandari et al., "ZeRO: Memory Optimizations Toward
/// Training Trillion Parameter Models", 2020).
struct DataParallel {
  int gpus = 1;
  int zero = 0;  ///< the stage; 0: whole replicas

  [[nodiscard]] bool is_parallel() const { return gpus > 1; }
  [[nodiscard]] bool shares_state() const { return is_parallel() && zero >= 1; }
  [[nodiscard]] bool shares_gradients() const { return is_parallel() && zero >= 2; }
  [[nodiscard]] bool shares_parameters() const { return is_parallel() && zero >= 3; }
  auto operator<=>(const DataParallel&) const = default;
};

inline constexpr int most_gpus = 65536;
inline constexpr int last_zero_stage = 3;

}  // namespace stowage
