#include "estimator/serving/rewired_products.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "estimator/model/operator_row.hpp"
#include "estimator/serving/serving_rows.hpp"

namespace stowage {

RewiredProducts::RewiredProducts(const ModelGraph& model,
                                 const std::vector<AttentionProducts>& products,
                                 GraphEditor& editor, const std::vector<bool>& within)
    : model_(model), editor_(editor) {
  for (std::size_t k = 0; k < products.size(); ++k) {
    for (const OperatorId op : products[k].operators) parts_.emplace(op, &products[k]);
    const std::size_t begin = products[k].operators.back().index() + 1;
    const std::size_t end =
        k + 1 < products.size() ? products[k + 1].first().index() : model.operators.size();
    for (std::size_t i = end; i-- > begin;) {
      const bool is_sum = model.operators[i].row->name == "add" && (within.empty() || within[i]);
      if (!is_sum) continue;
      block_ends_.emplace(OperatorId::of(i), &products[k]);
      break;
    }
  }
}

const AttentionProducts* RewiredProducts::part_of(OperatorId op) const {
  const auto part = parts_.find(op);
  return part == parts_.end() ? nullptr : part->second;
}

void RewiredProducts::put(OperatorId at, const std::vector<TensorId>& cached, std::int64_t keys) {
  const AttentionProducts& products = *parts_.at(at);
  Operator rewired = model_.op(at);
  for (TensorId& input : rewired.inputs) {
    if (input == products.key) {
      input = cached[0];
    } else if (input == products.value) {
      input = cached[1];
    }
  }
  if (rewired.outputs[0] == products.result) return hold_variables(rewired, products, cached);
  if (rewired.row->name == "matmul") keys_multiplied_ = rewired.inputs[1];
  const auto by = std::ranges::find(products.by_keys, rewired.outputs[0],
                                    &std::pair<TensorId, std::size_t>::first);
  put_widened(rewired, by->second, keys);
}

void RewiredProducts::after(OperatorId at) {
  const auto ends = block_ends_.find(at);
  if (ends == block_ends_.end()) return;
  const Operator& sum = model_.op(at);
  editor_.add(sum.name + ".weights", serving_rows::held_variables(), {},
              {sum.outputs[0], ends->second->weights}, {editor_.type(sum.outputs[0])}, sum.span);
}

void RewiredProducts::put_widened(const Operator& op, std::size_t axis, std::int64_t keys) {
  Operator wide = op;
  TensorType type = editor_.type(op.outputs[0]);
  type.shape[axis] = keys;
  if (op.attributes.has("shape")) wide.attributes.set("shape", type.shape);
  editor_.set_type(op.outputs[0], std::move(type));
  editor_.keep(wide);
}

void RewiredProducts::hold_variables(const Operator& last, const AttentionProducts& products,
                                     const std::vector<TensorId>& cached) {
  std::vector<TensorId> held = editor_.add(last.name, *last.row, last.attributes, last.inputs,
                                           {editor_.type(products.result)}, last.span);
  held.insert(held.end(), {products.query, keys_multiplied_, last.inputs[1]});
  held.insert(held.end(), cached.begin(), cached.end());
  editor_.keep({.name = last.name + ".variables",
                .row = &serving_rows::held_variables(),
                .inputs = std::move(held),
                .outputs = {products.result},
                .span = last.span});
}

}  // namespace stowage
