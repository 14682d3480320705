#include "planner/solve/search_tree.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace stowage {

namespace {

RoundedLimit exported_limit(const ResidencyProblem& problem, const LimitRow& row) {
  RoundedLimit limit = row.source;
  std::vector<std::int32_t> storages;
  for (const StorageRange& items : limit.counted) {
    for (std::int32_t item = items.first; item <= items.last; ++item) {
      storages.push_back(storage_number(problem, item));
    }
  }
  std::sort(storages.begin(), storages.end());
  limit.counted = ranges_of(storages);
  return limit;
}

}  // namespace

std::int32_t storage_number(const ResidencyProblem& problem, std::int32_t item) {
  return problem.storage_of.empty() ? item
                                    : problem.storage_of[static_cast<std::size_t>(item)].value;
}

std::vector<MemoryPrice> in_seconds(const CutModel& model, const Prices& prices) {
  std::vector<MemoryPrice> result;
  for (const StepPrice& p : prices) {
    result.push_back({p.step, static_cast<double>(p.price) * model.price_unit()});
  }
  return result;
}

BranchTree single_leaf(std::vector<MemoryPrice> prices) {
  return {{{}, BranchLeaf{.steps = std::move(prices), .limits = {}}}};
}

Fixing SearchTree::fixing_of(const Decision& decision) const {
  if (decision.gap < 0) return {.subject = decision.index};
  const Item& item = model_.problem->items[static_cast<std::size_t>(decision.index)];
  return {storage_number(*model_.problem, decision.index),
          item.touches[static_cast<std::size_t>(decision.gap)].step};
}

std::size_t SearchTree::add_child(std::size_t parent, const Decision& decision, bool on_gpu) {
  nodes_[parent].fixing = fixing_of(decision);
  nodes_[parent].child[on_gpu ? 0 : 1] = nodes_.size();
  nodes_[parent].leaf = {};  // it is none
  nodes_.emplace_back();
  return nodes_.size() - 1;
}

void SearchTree::set_prices(std::size_t place, PricedRows priced) {
  nodes_[place].leaf = std::move(priced);
}

void SearchTree::add_rows(std::size_t place, const std::vector<const LimitRow*>& rows,
                          const std::vector<const LimitRow*>& inherited) {
  for (const LimitRow* row : rows) {
    if (std::find(inherited.begin(), inherited.end(), row) == inherited.end()) {
      nodes_[place].added.push_back(row);
    }
  }
}

BranchTree SearchTree::exported() const {
  std::vector<std::size_t> order;  // places, in pre-order
  for (std::vector<std::size_t> stack{0}; !stack.empty();) {
    const std::size_t place = stack.back();
    stack.pop_back();
    order.push_back(place);
    if (!nodes_[place].fixing) continue;
    stack.push_back(nodes_[place].child[1]);
    stack.push_back(nodes_[place].child[0]);
  }
  std::map<const LimitRow*, std::int32_t> number;  // of rows that a leaf prices, looked up
  for (const std::size_t place : order) {
    for (const LimitRow* row : nodes_[place].leaf.rows) number.emplace(row, -1);
  }
  BranchTree tree;
  std::int32_t rows = 0;
  for (const std::size_t place : order) {
    const Node& node = nodes_[place];
    BranchNode& exported = tree.emplace_back();
    for (const LimitRow* row : node.added) {
      const auto found = number.find(row);
      if (found == number.end()) continue;
      found->second = rows++;
      exported.limits.push_back(exported_limit(*model_.problem, *row));
    }
    if (node.fixing) {
      exported.content = *node.fixing;
      continue;
    }
    BranchLeaf leaf{.steps = in_seconds(model_, node.leaf.prices.steps), .limits = {}};
    for (std::size_t r = 0; r < node.leaf.rows.size(); ++r) {
      leaf.limits.push_back({number.at(node.leaf.rows[r]),
                             static_cast<double>(node.leaf.prices.rows[r]) * model_.price_unit()});
    }
    std::sort(leaf.limits.begin(), leaf.limits.end(),
              [](const LimitPrice& a, const LimitPrice& b) { return a.limit < b.limit; });
    exported.content = std::move(leaf);
  }
  return tree;
}

}  // namespace stowage
