// Finds the repeated blocks of a network by the layers' paths.
//
// A layer's block is the part of its path up to the first number: "layers.3" for
// "layers.3.mlp.up_proj". Blocks of one name with different numbers form a chain. A chain has at
// least two blocks, and at least one of them has several operators: transformers' decoder layers,
// or a ResNet's "layer1.0" and "layer1.1", but not the single layers of an nn.Sequential.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "estimator/model/model_graph.hpp"

namespace stowage {

/// The block of a path: "layers.3" for "layers.3.mlp.up_proj"; "": no part is a number.
[[nodiscard]] std::string_view block_of(std::string_view path);

struct BlockChain {
  std::map<std::string_view, std::size_t> operators;  ///< number of operators, by block
  std::vector<std::string_view> blocks;               ///< in their order
};

/// The chains by the blocks' name, "layers". Losses are in no block. The texts are views into the
/// model, which must outlive them.
[[nodiscard]] std::map<std::string_view, BlockChain> block_chains(const ModelGraph& model);

}  // namespace stowage
