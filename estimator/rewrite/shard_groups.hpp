// ShardGroups: the groups of parameters that FSDP gathers together, and how each parameter is cut
// into shards.
//
// fully_shard is applied to each repeated block (model/repeated_blocks.hpp) and then to the whole
// model: each block's parameters form a group, and the root's group has the rest. A parameter is
// cut along its first axis into equal shards, of which the last ones are padded; the step has the
// first shard, which is the largest (torch/distributed/fsdp/_fully_shard/_fsdp_param.py,
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
  /// Format of the shard, its gradient and the optimizer's state.
  DataType kept = DataType::float32;
  DataType gathered = DataType::float32;  ///< format that the kernels read
  Shape local;                            ///< shape of the first shard
  std::int64_t shard = 0;                 ///< elements of each shard, with padding
  std::int64_t whole = 0;                 ///< elements of the parameter
  bool trains = false;
};

struct ShardGroup {
  std::string name;  ///< "layers.3"; the root's is "root"
  std::vector<ShardedParameter> parameters;
  OperatorId first;  ///< its first operator; invalid: it has none
  [[nodiscard]] bool trains() const;
};

struct ShardGroups {
  std::vector<ShardGroup> groups;  ///< the root first, then the blocks in their order
  std::vector<int> group_of;       ///< by OperatorId
};

/// Errors: what fully_shard refuses: a parameter in two groups, a parameter without axes, trained
/// parameters of one group in several formats, images in the nhwc layout; a quantised base, for
/// which FSDP needs extensions that bitsandbytes does not have; a number of GPUs that
/// reshards_among does not divide; a group larger than largest_memory with its padding.
[[nodiscard]] Result<ShardGroups> shard_groups(const ModelGraph& model,
                                               const DataParallel& parallel);

}  // namespace stowage
