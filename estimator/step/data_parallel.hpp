// DataParallel: how many GPUs train the model together, and what each of them keeps of it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "estimator/base/data_type.hpp"

namespace stowage {

/// The part of a GPU's share that lies in the CPU's memory.
enum class Offload : std::uint8_t {
  none,
  optimizer,   ///< ZeRO: the optimizer's state and master weights, and its step (ZeRO-Offload)
  parameters,  ///< ZeRO 3: the parameters in the format that the kernels read
  all,         ///< both; the one way of FSDP (CPUOffloadPolicy)
};

/// PyTorch's fully_shard (FSDP2), as its arguments have it. The precision says the other half of
/// its MixedPrecisionPolicy: mixed-bf16 is param_dtype=torch.bfloat16 over fp32 parameters.
struct FullyShard {
  bool on = false;
  bool by_block = true;  ///< each repeated block is a group of its own; else the root has all
  bool reshards_after_forward = true;  ///< of the blocks; the root's group is never
  int reshards_among = 0;              ///< reshard_after_forward=N; 0: among all
  int forward_prefetch = 0;            ///< set_modules_to_forward_prefetch: blocks ahead
  int backward_prefetch = 0;           ///< set_modules_to_backward_prefetch; 0: PyTorch's own, one
  std::optional<DataType> reduce_type = {};  ///< reduce_dtype; none: the gradients' own
  std::optional<DataType> output_type = {};  ///< output_dtype; none: the result as it is
  bool operator==(const FullyShard&) const = default;
};

/// A replica on each GPU (PyTorch's DistributedDataParallel), or what is left of one: FSDP's
/// shards, or what DeepSpeed's ZeRO leaves: from stage 1 on each keeps its share of the optimizer's
/// state, from 2 on of the gradients too, in 3 of the parameters as well (Rajbhandari et al.,
/// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020).
struct DataParallel {
  int gpus = 1;
  int zero = 0;  ///< the stage; 0: whole replicas, or FSDP
  FullyShard fsdp = {};
  Offload offload = Offload::none;
  bool pinned = true;  ///< what is offloaded lies in page-locked memory

  [[nodiscard]] bool is_parallel() const { return gpus > 1; }
  /// ZeRO's buffers and ways of updating are there: among several GPUs, and on a single one for
  /// what it offloads. The share of a single one is the whole.
  [[nodiscard]] bool runs_zero() const {
    return zero > 0 && (is_parallel() || offload != Offload::none);
  }
  [[nodiscard]] bool shares_state() const { return runs_zero(); }
  [[nodiscard]] bool shares_gradients() const { return runs_zero() && zero >= 2; }
  [[nodiscard]] bool shares_parameters() const { return runs_zero() && zero >= 3; }
  [[nodiscard]] bool offloads_optimizer() const {
    return offload == Offload::optimizer || offload == Offload::all;
  }
  [[nodiscard]] bool offloads_parameters() const {
    return offload == Offload::parameters || offload == Offload::all;
  }
  bool operator==(const DataParallel&) const = default;
};

inline constexpr int most_gpus = 65536;
inline constexpr int last_zero_stage = 3;
inline constexpr int most_prefetched_blocks = 1000;

[[nodiscard]] std::string_view to_string(Offload offload);

}  // namespace stowage
