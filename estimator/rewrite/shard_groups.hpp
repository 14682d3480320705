// Which parameters FSDP gathers together, and how each is cut into shards.
//
// As fully_shard is applied to each repeated block (model/repeated_blocks.hpp) and then to the
// whole model: a block's parameters are a group, and the root's group has what is left. A parameter
// is cut along its first axis into equal parts, the last of which are padded; a GPU's shard is the
// first, which is the largest (torch/distributed/fsdp/_fully_shard/_fsdp_param.py,
// _init_sharded_param).
#pragma once

#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/data_parallel.hpp"

namespace stowage {

struct ShardedParameter {
  ParameterId id;
  DataType kept = DataType::float32;      ///< of the shard, its gradient and the optimizer's state
  DataType gathered = DataType::float32;  ///< that the kernels read
  Shape local;                            ///< of the first shard
  std::int64_t shard = 0;                 ///< elements of each shard, with padding
  std::int64_t whole = 0;                 ///< elements of the parameter
  bool trains = false;
};

struct ShardGroup {
  std::string name;  ///< "layers.3"; the root's is "root"
  std::vector<ShardedParameter> parameters;
  OperatorId first;  ///< of its operators; none: it has none
  [[nodiscard]] bool trains() const;
};

struct ShardGroups {
  std::vector<ShardGroup> groups;  ///< the root first, then the blocks in their order
  std::vector<int> group_of;       ///< by OperatorId
};

/// Errors: what fully_shard refuses: a parameter of two groups, one without axes, trained
/// parameters of one group in several formats, images laid out as nhwc; a quantised base, for whose
/// tensors FSDP needs extensions that bitsandbytes lacks; GPUs that reshards_among does not divide;
/// a group that is past largest_memory with its padding.
[[nodiscard]] Result<ShardGroups> shard_groups(const ModelGraph& model,
                                               const DataParallel& parallel);

}  // namespace stowage
