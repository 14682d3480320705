// The repeated blocks of a network, known by the layers' paths.
//
// A block is the part of a path up to its first number: "layers.3" of "layers.3.mlp.up_proj".
// Blocks of one name with different numbers are a chain. A chain has at least two blocks, of which
// one has several operators: transformers' decoder layers, a ResNet's "layer1.0" and "layer1.1",
// but not the single layers of an nn.Sequential.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "estimator/model/model_graph.hpp"

namespace stowage {

/// "layers.3" of "layers.3.mlp.up_proj"; "": no part is a number.
[[nodiscard]] std::string_view block_of(std::string_view path);

struct BlockChain {
  std::map<std::string_view, std::size_t> operators;  ///< how many, by block
  std::vector<std::string_view> blocks;               ///< in their order
};

/// By the blocks' name: "layers". Losses are in no block. The names are the model's: it outlives
/// them.
[[nodiscard]] std::map<std::string_view, BlockChain> block_chains(const ModelGraph& model);

}  // namespace stowage
