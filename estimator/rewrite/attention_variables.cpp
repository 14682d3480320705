#include "estimator/rewrite/attention_variables.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "estimator/model/operator_path.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/module_inputs.hpp"

namespace stowage {

namespace {

/// The products before and behind a softmax.
struct Products {
  OperatorId scores, attended;
};

/// Nodes of one operator, half-open.
struct NodeRange {
  std::int32_t first = -1, end = -1;
};

bool is_within(std::string_view path, std::string_view module) {
  return path.size() > module.size() && path.starts_with(module) && path[module.size()] == '.';
}

std::string_view module_around(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

/// One of a repetition: "3", or "layers#3" where a loop calls them (modules_reader.hpp).
bool is_repeated(std::string_view part) {
  part = part.substr(part.find('#') + 1);
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

/// "model.layers.3" of "model.layers.3.self_attn.weights"; the module around it where no layer is
/// repeated.
std::string_view repeated_layer_around(std::string_view path) {
  const std::string_view innermost = module_around(path);
  for (std::string_view at = innermost; !at.empty(); at = module_around(at)) {
    const std::size_t dot = at.rfind('.');
    if (is_repeated(dot == at.npos ? at : at.substr(dot + 1))) return at;
  }
  return innermost;
}

class Variables {
 public:
  Variables(StepGraph& step, const ModelGraph& model)
      : step_(step), model_(model), nodes_(model.operators.size()) {
    for (std::size_t n = 0; n < step.nodes.size(); ++n) {
      if (!step.nodes[n].op.valid()) continue;
      NodeRange& range = nodes_[step.nodes[n].op.index()];
      if (range.first < 0) range.first = static_cast<std::int32_t>(n);
      range.end = static_cast<std::int32_t>(n) + 1;
    }
  }

  void run() {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const OperatorId softmax = OperatorId::of(i);
      if (is_attention(model_.op(softmax))) hold(softmax);
    }
  }

 private:
  static bool is_attention(const Operator& op) {
    return (op.row->name == "softmax" || op.row->name == "sink_softmax") &&
           op.attributes.text("held") != "nothing";
  }

  [[nodiscard]] std::string_view name_of(OperatorId id) const {
    return id.valid() ? model_.op(id).row->name : std::string_view();
  }

  [[nodiscard]] OperatorId maker(TensorId tensor) const { return model_.tensor(tensor).producer; }

  /// Through scaling, caps and masks before the softmax, and dropout behind it.
  [[nodiscard]] std::optional<Products> around(OperatorId softmax) const {
    constexpr std::array<std::string_view, 6> between{"add",  "scale",    "tanh",
                                                      "cast", "identity", "reshape"};
    OperatorId at = maker(model_.op(softmax).inputs[0]);
    while (std::ranges::find(between, name_of(at)) != between.end()) {
      at = maker(model_.op(at).inputs[0]);
    }
    if (name_of(at) != "matmul") return std::nullopt;
    TensorId weights = model_.op(softmax).outputs[0];
    for (std::size_t i = softmax.index() + 1; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[i];
      if (op.inputs.empty() || op.inputs[0] != weights) continue;
      if (op.row->name == "matmul") return Products{at, OperatorId::of(i)};
      weights = op.outputs[0];
    }
    return std::nullopt;
  }

  /// Activations that the operator reads and others made.
  void add_read(OperatorId id, std::set<StorageId>& read) const {
    const NodeRange range = nodes_[id.index()];
    std::set<StorageId> own;
    for (std::int32_t n = range.first; n >= 0 && n < range.end; ++n) {
      const KernelNode& node = step_.nodes[static_cast<std::size_t>(n)];
      for (const TensorView& view : node.reads) {
        const Storage& storage = step_.storage(view.storage);
        if (storage.persistence == Persistence::transient &&
            storage.storage_class == StorageClass::activation && !own.contains(view.storage)) {
          read.insert(view.storage);
        }
      }
      for (const TensorView& view : node.writes) own.insert(view.storage);
    }
  }

  /// As above, of what repeats shared heads, too: the keys before and behind it are variables.
  void add_heads(OperatorId id, std::set<StorageId>& read) const {
    add_read(id, read);
    for (const TensorId input : model_.op(id).inputs) {
      for (OperatorId at = maker(input); name_of(at) == "reshape" || name_of(at) == "expand";
           at = maker(model_.op(at).inputs[0])) {
        add_read(at, read);
      }
    }
  }

  /// The last node of the run of nodes in the module that `at` is in.
  [[nodiscard]] std::int32_t last_node(std::int32_t at, std::string_view module) const {
    const auto nodes = static_cast<std::int32_t>(step_.nodes.size());
    while (at + 1 < nodes) {
      const KernelNode& next = step_.nodes[static_cast<std::size_t>(at) + 1];
      if (!next.op.valid() || !is_within(path_of(model_.op(next.op)), module)) break;
      ++at;
    }
    return at;
  }

  /// Where the variable of the layer lets go: the end of the layer, or of the next attention's
  /// module within it.
  [[nodiscard]] std::int32_t layer_end(OperatorId softmax, std::int32_t at) const {
    const std::string_view layer = repeated_layer_around(path_of(model_.op(softmax)));
    const std::int32_t end = last_node(at, layer);
    for (std::size_t i = softmax.index() + 1; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[i];
      const std::int32_t first = nodes_[i].first;
      if (first > end) break;
      if (first >= 0 && is_attention(op)) return last_node(first, module_around(path_of(op)));
    }
    return end;
  }

  void hold_through(std::int32_t last, StorageId id) {
    hold_in(step_.nodes[static_cast<std::size_t>(last)], id);
  }

  void hold(OperatorId softmax) {
    const std::optional<Products> products = around(softmax);
    if (!products) return;
    const std::int32_t at = nodes_[products->attended.index()].end - 1;
    const Operator& op = model_.op(softmax);
    std::set<StorageId> weights, held;
    add_read(products->attended, held);
    const KernelNode& made = step_.nodes[static_cast<std::size_t>(nodes_[softmax.index()].end) - 1];
    for (const TensorView& view : made.writes) weights.insert(view.storage);
    // The joined scores have a variable of their own, which the weights do not replace.
    if (op.row->name == "sink_softmax") held.insert(made.reads.front().storage);
    add_heads(products->scores, held);
    add_heads(products->attended, held);
    const std::int32_t module_end = last_node(at, module_around(path_of(op)));
    for (const StorageId id : held) hold_through(module_end, id);
    if (op.attributes.text("held") != "layer") return;
    const std::int32_t end = layer_end(softmax, at);
    for (const StorageId id : weights) hold_through(end, id);
  }

  StepGraph& step_;
  const ModelGraph& model_;
  std::vector<NodeRange> nodes_;  // by operator
};

}  // namespace

StepGraph with_attention_variables(StepGraph step, const ModelGraph& model) {
  const bool holds = step.settings.mode == Mode::inference && step.kernel_set().frees_by_reference;
  if (holds) Variables(step, model).run();
  return step;
}

}  // namespace stowage
