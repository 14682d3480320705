#include "estimator/model/repeated_blocks.hpp"

#include <algorithm>

#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

bool is_block_number(std::string_view part) {
  return !part.empty() &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "layers" of "layers.3".
std::string_view chain_of(std::string_view block) { return block.substr(0, block.rfind('.')); }

}  // namespace

std::string_view block_of(std::string_view path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    if (at > 0 && is_block_number(path.substr(at, end - at))) return path.substr(0, end);
    at = end + 1;
  }
  return {};
}

std::map<std::string_view, BlockChain> block_chains(const ModelGraph& model) {
  std::map<std::string_view, BlockChain> chains;
  for (const Operator& op : model.operators) {
    const std::string_view block = block_of(op.name);
    if (block.empty() || op.row->is_loss) continue;
    BlockChain& chain = chains[chain_of(block)];
    if (++chain.operators[block] == 1) chain.blocks.push_back(block);
  }
  std::erase_if(chains, [](const auto& entry) {
    const BlockChain& chain = entry.second;
    return chain.blocks.size() < 2 ||
           std::all_of(chain.operators.begin(), chain.operators.end(),
                       [](const auto& block) { return block.second < 2; });
  });
  return chains;
}

}  // namespace stowage
