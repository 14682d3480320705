#include "planner/export/plan_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "estimator/model/repeated_blocks.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// What is merged: neighbouring layers.
struct Stretch {
  std::string_view chain;           ///< "stage1.unit"; empty: not blocks of one chain
  std::string_view first, last;     ///< blocks, or layers without a number
  std::size_t blocks = 0;           ///< of the chain
  std::vector<std::string> joined;  ///< last parts of the layers that joined it
  std::vector<OperatorId> operators;
  std::string kernels;  ///< what is compared: kernels with their sides, copies with their ways
  Bytes parameters, copied;
};

/// By OperatorId: what the plan does of each layer.
struct LayerFacts {
  std::string kernels;
  Bytes parameters, copied;
};

std::vector<LayerFacts> facts_of_layers(const Plan& plan) {
  const StepGraph& graph = *plan.step.graph;
  std::vector<LayerFacts> facts(graph.origins.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    if (!node.op.valid()) continue;
    facts[node.op.index()].kernels +=
        fmt::format("{} {} {};", kernel_name(node), to_string(node.phase),
                    device_of(plan, plan.nodes[i]) == Device::cpu ? "cpu" : "gpu");
  }
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    if (!storage.op.valid() || storage.storage_class != StorageClass::parameter) continue;
    facts[storage.op.index()].parameters += plan.step.storage_bytes[i];
  }
  for (const Transfer& transfer : plan.transfers) {
    const Storage& storage = plan.storage(transfer.storage);
    if (!storage.op.valid()) continue;
    LayerFacts& of = facts[storage.op.index()];
    of.copied += plan.bytes(transfer.storage);
    of.kernels += fmt::format("{} {};", to_string(storage.storage_class),
                              direction_of(plan, transfer) == Direction::h2d ? "up" : "down");
  }
  return facts;
}

void append(Stretch& stretch, const Stretch& next) {
  stretch.operators.insert(stretch.operators.end(), next.operators.begin(), next.operators.end());
  stretch.parameters += next.parameters;
  stretch.copied += next.copied;
}

/// One stretch a block, or a layer without a number.
std::vector<Stretch> blocks_of(const Plan& plan) {
  const StepGraph& graph = *plan.step.graph;
  const std::vector<LayerFacts> facts = facts_of_layers(plan);
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < graph.origins.size(); ++i) {
    const std::string_view path = graph.origins[i].layer;
    const std::string_view block = block_of(path);
    const std::string_view key = block.empty() ? path : block;
    if (stretches.empty() || stretches.back().first != key) {
      stretches.push_back(
          {.chain = block.substr(0, block.rfind('.')), .first = key, .last = key, .blocks = 1});
      if (block.empty()) stretches.back().chain = {};
    }
    Stretch& stretch = stretches.back();
    stretch.operators.push_back(OperatorId{static_cast<std::int32_t>(i)});
    stretch.kernels += facts[i].kernels;
    stretch.parameters += facts[i].parameters;
    stretch.copied += facts[i].copied;
  }
  return stretches;
}

std::vector<Stretch> with_repeats_folded(const std::vector<Stretch>& blocks) {
  std::vector<Stretch> folded;
  for (const Stretch& block : blocks) {
    if (!folded.empty() && !block.chain.empty() && folded.back().chain == block.chain &&
        folded.back().kernels == block.kernels) {
      append(folded.back(), block);
      folded.back().last = block.last;
      ++folded.back().blocks;
    } else {
      folded.push_back(block);
    }
  }
  return folded;
}

std::vector<Stretch> with_small_layers_joined(const std::vector<Stretch>& stretches) {
  Bytes all;
  for (const Stretch& stretch : stretches) all += stretch.parameters;
  std::vector<Stretch> joined;
  for (const Stretch& stretch : stretches) {
    const bool is_small = stretch.chain.empty() && stretch.copied == Bytes() &&
                          stretch.parameters.count() < all.count() / 100 + 1;
    if (is_small && !joined.empty()) {
      append(joined.back(), stretch);
      joined.back().joined.emplace_back(last_part(stretch.first));
    } else {
      joined.push_back(stretch);
    }
  }
  return joined;
}

/// Merges the stretch at `at` with the one behind it.
void merge_at(std::vector<Stretch>& stretches, std::size_t at) {
  Stretch& first = stretches[at];
  const Stretch& second = stretches[at + 1];
  append(first, second);
  if (first.chain != second.chain) first.chain = {};
  first.blocks = first.chain.empty() ? 0 : first.blocks + second.blocks;
  first.last = second.last;
  first.joined = second.joined;
  stretches.erase(stretches.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

void merge_down_to(std::size_t most, std::vector<Stretch>& stretches) {
  while (stretches.size() > most) {
    std::size_t best = 0;
    std::pair<bool, Bytes> least;
    for (std::size_t i = 0; i + 1 < stretches.size(); ++i) {
      const bool is_apart =
          stretches[i].chain.empty() || stretches[i].chain != stretches[i + 1].chain;
      const std::pair price(is_apart, stretches[i].copied + stretches[i + 1].copied);
      if (i == 0 || price < least) {
        best = i;
        least = price;
      }
    }
    merge_at(stretches, best);
  }
}

std::string name_of(const Stretch& stretch, std::size_t blocks_of_chain) {
  std::string name(stretch.first);
  if (stretch.blocks > 1 && stretch.blocks == blocks_of_chain) {
    name = fmt::format("{} x {}", stretch.chain, stretch.blocks);
  } else if (stretch.first != stretch.last) {
    name = fmt::format("{} to {}", stretch.first, stretch.last);
  }
  if (stretch.joined.size() > 3) return fmt::format("{} to {}", name, stretch.joined.back());
  for (const std::string& part : stretch.joined) name += ", " + part;
  return name;
}

}  // namespace

PlanRows plan_rows(const Plan& plan, std::size_t most) {
  const std::vector<Stretch> blocks = blocks_of(plan);
  std::map<std::string_view, std::size_t> blocks_of_chain;
  for (const Stretch& block : blocks) ++blocks_of_chain[block.chain];
  std::vector<Stretch> stretches = with_small_layers_joined(with_repeats_folded(blocks));
  merge_down_to(most, stretches);
  PlanRows found;
  found.of_operator.resize(plan.step.graph->origins.size());
  for (const Stretch& stretch : stretches) {
    for (const OperatorId op : stretch.operators) {
      found.of_operator[op.index()] = static_cast<int>(found.names.size());
    }
    found.names.push_back(name_of(stretch, blocks_of_chain[stretch.chain]));
  }
  return found;
}

int PlanRows::row_of(const Plan& plan, const KernelNode& node) const {
  if (node.op.valid()) return of_operator[node.op.index()];
  std::set<int> written;
  for (const TensorView& view : node.writes) {
    if (plan.storage(view.storage).op.valid()) written.insert(row_of(plan, view.storage));
  }
  return written.size() == 1 ? *written.begin() : -1;
}

int PlanRows::row_of(const Plan& plan, StorageId storage) const {
  const OperatorId op = plan.storage(storage).op;
  return op.valid() ? of_operator[op.index()] : -1;
}

}  // namespace stowage
