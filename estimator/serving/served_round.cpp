#include "estimator/serving/served_round.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stowage {

namespace {

Shape fixed(const Shape& shape, std::int64_t batch) {
  Shape found;
  found.reserve(shape.size());
  for (const Affine& dimension : shape) found.push_back(dimension.at(batch));
  return found;
}

TensorView fixed(TensorView view, std::int64_t batch) {
  view.shape = fixed(view.shape, batch);
  view.strides = fixed(view.strides, batch);
  view.offset = view.offset.at(batch);
  return view;
}

ConvolutionCall fixed(ConvolutionCall call, std::int64_t batch) {
  for (TensorType* type : {&call.x, &call.w, &call.y}) type->shape = fixed(type->shape, batch);
  return call;
}

/// Whether a later pass finds what an earlier one has left there.
bool lasts(const Storage& storage) { return storage.persistence == Persistence::persistent; }

class Round {
 public:
  explicit Round(const LoweredPass& decode) {
    made_.settings = decode.graph.settings;
    made_.model = decode.graph.model;
    made_.gradients = decode.graph.gradients;
  }

  /// Appends the pass. Gives what of it lasts and stands in the round under the same name, but is
  /// another parameter's.
  std::optional<std::string> add(const LoweredPass& pass, std::string_view prefix) {
    pass_ = &pass;
    prefix_ = prefix;
    if (auto differing = add_storages()) return differing;
    add_operators();
    add_nodes();
    for (const TensorView& input : pass.graph.inputs) made_.inputs.push_back(placed(input));
    made_.output = placed(pass.graph.output);
    return std::nullopt;
  }

  /// The node by which the next pass's first input comes from the last one's output.
  void add_next_tokens(const LoweredPass& next) {
    KernelNode node{.name = std::string(decode_prefix) + "next_tokens",
                    .kernel = Kernel::foreign,
                    .reads = {made_.output},
                    .foreign_kernel = Shared<std::string>("argmax")};
    if (!next.graph.inputs.empty()) {
      next_tokens_ = next.graph.inputs.front().storage;
      taken_tokens_ = NodeId::of(made_.nodes.size());
    }
    made_.nodes.push_back(std::move(node));
  }

  StepGraph finish() && { return std::move(made_); }

 private:
  [[nodiscard]] std::string own_name(const std::string& name) const {
    return std::string(prefix_) + name;
  }

  std::optional<std::string> add_storages() {
    const StepGraph& graph = pass_->graph;
    storages_.clear();
    for (std::size_t i = 0; i < graph.storages.size(); ++i) {
      Storage storage = graph.storages[i];
      storage.bytes = storage.bytes.at(pass_->batch);
      if (lasts(storage)) {
        const auto shared = lasting_.find(storage.name);
        if (shared != lasting_.end()) {
          const Storage& there = made_.storage(shared->second);
          if (there.parameter != storage.parameter) return storage.name;
          if (there.bytes == storage.bytes && there.storage_class == storage.storage_class) {
            storages_.push_back(shared->second);
            continue;
          }
          storage.name = own_name(storage.name);
        }
        lasting_.emplace(storage.name, StorageId::of(made_.storages.size()));
      } else {
        storage.name = own_name(storage.name);
      }
      if (StorageId::of(i) == next_tokens_) {  // made by the node between the passes
        storage.persistence = Persistence::transient;
        storage.storage_class = StorageClass::activation;
      }
      storages_.push_back(StorageId::of(made_.storages.size()));
      made_.storages.push_back(std::move(storage));
    }
    return std::nullopt;
  }

  void add_operators() {
    operators_.clear();
    for (const Origin& origin : pass_->graph.origins) {
      const auto [found, is_new] =
          by_layer_.emplace(origin.layer, OperatorId::of(made_.origins.size()));
      if (is_new) made_.origins.push_back(origin);
      operators_.push_back(found->second);
    }
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      const OperatorId op = pass_->graph.storages[i].op;
      Storage& made = made_.storages[storages_[i].index()];
      if (op.valid()) made.op = operators_[op.index()];
    }
  }

  [[nodiscard]] StorageId placed(StorageId id) const {
    return id.valid() ? storages_[id.index()] : id;
  }
  [[nodiscard]] TensorView placed(const TensorView& view) const {
    TensorView found = fixed(view, pass_->batch);
    found.storage = placed(view.storage);
    return found;
  }

  void add_nodes() {
    const StepGraph& graph = pass_->graph;
    const std::size_t first = made_.nodes.size();
    if (taken_tokens_.valid()) {
      made_.nodes[taken_tokens_.index()].writes = {placed(graph.inputs.front())};
    }
    for (const KernelNode& node : graph.nodes) {
      KernelNode made = node;
      made.name = own_name(node.name);
      made.flops = node.flops.at(pass_->batch);
      if (node.op.valid()) made.op = operators_[node.op.index()];
      for (TensorView& view : made.reads) view = placed(view);
      for (TensorView& view : made.writes) view = placed(view);
      for (StorageId& id : made.temporaries) id = placed(id);
      for (StorageId& id : made.holds) id = placed(id);
      if (node.convolution >= 0) {
        made.convolution = static_cast<int>(made_.convolutions.size());
        made_.convolutions.push_back(
            fixed(graph.convolutions[static_cast<std::size_t>(node.convolution)], pass_->batch));
      }
      made_.nodes.push_back(std::move(made));
    }
    for (const auto& [storage, hold] : graph.script_holds) {
      ScriptHold moved = hold;
      for (NodeId* const id : {&moved.loaded_before, &moved.first_made_by, &moved.replaced_after}) {
        if (id->valid()) *id = NodeId::of(id->index() + first);
      }
      if (storage != next_tokens_) made_.script_holds.set(placed(storage), moved);
    }
  }

  const LoweredPass* pass_ = nullptr;  // the one that is added
  std::string_view prefix_;            // its
  std::vector<StorageId> storages_;    // by StorageId of the pass
  std::vector<OperatorId> operators_;  // by OperatorId of the pass
  std::unordered_map<std::string, StorageId> lasting_;
  std::unordered_map<std::string, OperatorId> by_layer_;
  StorageId next_tokens_;  // of the pass that is added next
  NodeId taken_tokens_;
  StepGraph made_;
};

std::optional<Diagnostic> unjoinable(const LoweredPass& prefill, const LoweredPass& decode) {
  if (prefill.graph.gradients.size() != decode.graph.gradients.size()) {
    return Diagnostic{.message = "the passes have different parameters"};
  }
  for (const StepGraph* graph : {&prefill.graph, &decode.graph}) {
    if (graph->nodes.empty()) return Diagnostic{.message = "a pass computes nothing"};
    for (const Storage& storage : graph->storages) {
      if (storage.storage_class != StorageClass::kv_cache || lasts(storage)) continue;
      return Diagnostic{
          .message = fmt::format("each step makes its cache '{}' anew, so that no plan of two "
                                 "passes has a place for it",
                                 storage.name),
          .hint = "`cache` paged and static have one place for all passes"};
    }
  }
  return std::nullopt;
}

}  // namespace

Result<StepGraph> served_round(const LoweredPass& prefill, const LoweredPass& decode) {
  if (auto problem = unjoinable(prefill, decode)) return failure(*std::move(problem));
  Round round(decode);
  auto differing = round.add(prefill, prefill_prefix);
  if (!differing) {
    round.add_next_tokens(decode);
    differing = round.add(decode, decode_prefix);
  }
  if (differing) {
    return failure(fmt::format("'{}' is not the same parameter in both passes", *differing));
  }
  return std::move(round).finish();
}

}  // namespace stowage
