#include "estimator/serving/attention_products.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "estimator/model/operator_row.hpp"
#include "estimator/serving/serving_rows.hpp"

namespace stowage {

namespace {

constexpr std::size_t key_axis = 2;          // of keys and values, [batch, heads, keys, features]
constexpr std::size_t grouped_key_axis = 3;  // [batch, key heads, heads of each, keys, features]

class ProductFinder {
 public:
  explicit ProductFinder(const ModelGraph& model) : model_(model), readers_(model.tensors.size()) {
    for (std::size_t i = 0; i < model.operators.size(); ++i) {
      if (model.operators[i].row == &serving_rows::held_variables()) continue;
      for (const TensorId input : model.operators[i].inputs) {
        readers_[input.index()].push_back(OperatorId::of(i));
      }
    }
  }

  [[nodiscard]] std::optional<AttentionProducts> around(OperatorId softmax) const {
    AttentionProducts found;
    const auto scores = scores_behind(softmax, found);
    if (!scores) return std::nullopt;
    const auto product = product_of_weights(softmax, found);
    if (!product) return std::nullopt;
    const Operator& a = model_.op(*scores);
    const Operator& b = model_.op(*product);
    found.query = a.inputs[0];
    found.key = before_repetition(a.inputs[1], found);
    found.value = before_repetition(b.inputs[1], found);
    found.weights = b.inputs[0];
    found.result = b.outputs[0];
    if (name_of(softmax) == "sink_softmax") found.sinks = model_.op(softmax).inputs[1];
    found.operators.push_back(*product);
    std::ranges::sort(found.operators);
    return is_whole(found) ? std::optional(found) : std::nullopt;
  }

 private:
  [[nodiscard]] std::string_view name_of(OperatorId id) const {
    return id.valid() ? model_.op(id).row->name : std::string_view();
  }

  [[nodiscard]] OperatorId maker(TensorId tensor) const { return model_.tensor(tensor).producer; }

  /// The tensor behind layers that only pass their input on.
  [[nodiscard]] TensorId given_on(TensorId tensor) const {
    while (name_of(maker(tensor)) == "identity") tensor = model_.op(maker(tensor)).inputs[0];
    return tensor;
  }

  [[nodiscard]] bool is_causal_mask(TensorId tensor) const {
    const OperatorId by = maker(given_on(tensor));
    return name_of(by) == "constant" && model_.op(by).attributes.boolean("causal");
  }

  /// From the softmax backwards to the product of queries and keys.
  std::optional<OperatorId> scores_behind(OperatorId softmax, AttentionProducts& found) const {
    OperatorId at = softmax;
    for (;;) {
      const Operator& op = model_.op(at);
      found.operators.push_back(at);
      found.by_keys.emplace_back(op.outputs[0], model_.tensor(op.outputs[0]).type.shape.size() - 1);
      if (op.row->name == "matmul") break;
      TensorId from = op.inputs[0];
      if (op.row->name == "add" && op.inputs.size() == 2) {
        const std::size_t mask = is_causal_mask(op.inputs[1]) ? 1 : 0;
        if (is_causal_mask(op.inputs[mask])) {
          found.mask = given_on(op.inputs[mask]);
          from = op.inputs[1 - mask];
        }
      }
      constexpr std::array<std::string_view, 6> between{"softmax", "sink_softmax", "add",
                                                        "scale",   "tanh",         "identity"};
      const bool known = std::ranges::find(between, op.row->name) != between.end();
      if (!known || !maker(from).valid()) return std::nullopt;
      at = maker(from);
    }
    if (!model_.op(at).attributes.boolean("transpose_b")) return std::nullopt;
    found.is_causal = found.mask.valid();
    if (found.is_causal) {
      found.window = model_.op(maker(found.mask)).attributes.integer("window");
    }
    return at;
  }

  /// From the softmax onwards to the product with the values.
  std::optional<OperatorId> product_of_weights(OperatorId softmax, AttentionProducts& found) const {
    TensorId weights = model_.op(softmax).outputs[0];
    for (;;) {
      const std::vector<OperatorId>& by = readers_[weights.index()];
      if (by.size() != 1) return std::nullopt;
      const Operator& op = model_.op(by[0]);
      if (op.row->name == "matmul") {
        const bool plain = op.inputs[0] == weights && !op.attributes.boolean("transpose_a") &&
                           !op.attributes.boolean("transpose_b");
        return plain ? std::optional(by[0]) : std::nullopt;
      }
      if (op.row->name != "dropout" && op.row->name != "identity") return std::nullopt;
      weights = op.outputs[0];
      found.operators.push_back(by[0]);
      found.by_keys.emplace_back(weights, model_.tensor(weights).type.shape.size() - 1);
    }
  }

  /// repeat_kv: a new axis of length one, expanded, and merged with the heads. Returns the tensor
  /// before it.
  TensorId before_repetition(TensorId heads, AttentionProducts& found) const {
    TensorId at = heads;
    const auto pass = [&](std::size_t axis) {
      found.operators.push_back(maker(at));
      found.by_keys.emplace_back(at, axis);
      at = model_.op(maker(at)).inputs[0];
    };
    while (name_of(maker(at)) == "identity") pass(key_axis);
    const OperatorId joined = maker(at);
    if (name_of(joined) != "reshape") return at;
    const OperatorId wide = maker(model_.op(joined).inputs[0]);
    if (name_of(wide) != "expand") return at;
    const OperatorId groups = maker(model_.op(wide).inputs[0]);
    if (name_of(groups) != "reshape") return at;
    pass(key_axis);
    pass(grouped_key_axis);
    pass(grouped_key_axis);
    return at;
  }

  /// Whether keys and values are made before the first of its operators, and have the shape of a
  /// cache.
  [[nodiscard]] bool is_whole(const AttentionProducts& found) const {
    for (const TensorId tensor : {found.query, found.key, found.value}) {
      if (model_.tensor(tensor).type.shape.size() != 4) return false;
      const OperatorId by = maker(tensor);
      if (by.valid() && !(by < found.first())) return false;
    }
    return !found.is_causal || maker(found.mask) < found.first();
  }

  const ModelGraph& model_;
  std::vector<std::vector<OperatorId>> readers_;  // by tensor
};

}  // namespace

std::vector<AttentionProducts> attention_products(const ModelGraph& model) {
  const ProductFinder finder(model);
  std::vector<AttentionProducts> found;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const std::string_view name = model.operators[i].row->name;
    if (name != "softmax" && name != "sink_softmax") continue;
    if (auto products = finder.around(OperatorId::of(i))) found.push_back(*std::move(products));
  }
  return found;
}

std::vector<AttentionProducts> causal_products(const ModelGraph& model) {
  std::vector<AttentionProducts> found = attention_products(model);
  std::erase_if(found, [](const AttentionProducts& products) { return !products.is_causal; });
  return found;
}

}  // namespace stowage
