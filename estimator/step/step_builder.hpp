// StepBuilder: the step graph under construction, and the gradients on their way.
//
// Gradients are summed as autograd's input buffers do: the first to arrive is kept, a later one is
// added in place if nothing else holds the first, else into a new storage
// (torch/csrc/autograd/input_buffer.cpp, PyTorch 2.x). A gradient handed to several tensors (add's
// backward) is one storage with several holders until they are consumed.
//
// Parts: step_builder.cpp (forward, storages, names), gradients.cpp (backward rules and the sums of
// gradients), dead_ends.cpp, overwritten_views.cpp, parameter_gradients.cpp (.grad), casts.cpp
// (autocast), script_variables.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/model/model_graph.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/step/contiguous_layouts.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

class StepBuilder {
 public:
  StepBuilder(const ModelGraph& model, const LoweringSettings& settings);

  /// Builds the whole step. Preconditions: every operator has a forward rule for the kernel set;
  /// one micro-batch is asked for.
  [[nodiscard]] StepGraph build() &&;

 private:
  friend class OperatorLowering;

  struct Gradient {
    TensorView view;
    bool present = false;
  };
  struct Saved {
    std::string role;
    TensorView view;
  };
  /// The conversion of a tensor or of a parameter to another format, a node of its own in
  /// autograd's graph: gradients in the copy's format are summed there and converted once.
  struct Cast {
    TensorId tensor;  // its source: one of the two
    ParameterId parameter;
    DataType type = DataType::float32;  // of the copy
    Gradient gradient = {};
  };
  /// An operator's view of an argument that autocast converted.
  struct CastCopy {
    int cast = -1;  // index into casts_; -1: it reads the argument itself
    TensorView view;
  };
  struct CastArguments {
    std::vector<CastCopy> inputs, parameters;  // empty: none was converted
    std::size_t first = 0, end = 0;            // in casts_: those that it was the first to need
  };
  /// To what a gradient goes.
  struct Destination {
    TensorId tensor;  // one of the three
    ParameterId parameter;
    int cast = -1;
  };
  /// A gradient that a backward rule gave away; delivered when the rule is done, as autograd does.
  struct Pending {
    Destination to;
    TensorView gradient;
  };
  /// An operator that overwrites a view, in backward (overwritten_views.cpp).
  struct OverwrittenView {
    TensorId input;            // the view
    StorageId incoming;        // the gradient that arrived
    TensorView base_gradient;  // of what it is a view of
  };
  /// What the usual script has in variables while it runs a step.
  struct ScriptVariables {
    std::vector<StorageId> inputs;  // and the augmented copies
    StorageId output, loss, first_gradient;
    std::vector<StorageId> other_outputs;  // what further losses read
    std::vector<StorageId> kept_by_graph;  // attributes of autograd nodes
  };

  // Forward.
  void reserve();
  void make_parameter_storages();
  void make_prefetched_inputs();
  void run_forward_and_backward();
  void make_inputs();
  void augment();
  void run_forward(OperatorId op);
  void keep_what_enters_region(OperatorId op);
  void run_forward_rule(OperatorId op);
  void record_saved();
  void find_what_only_losses_read();
  [[nodiscard]] bool is_loss(OperatorId op) const;
  [[nodiscard]] const LoweringRules& rules_of(const Operator& op) const;

  // What a training script's variables keep (script_variables.cpp).
  void keep_script_variables();
  void hold_to_end(StorageId id);
  void keep_result(StorageId id, NodeId assigned_after);

  // Storages and nodes.
  [[nodiscard]] TensorView handed_over(const TensorType& type);
  [[nodiscard]] bool making_gradients() const { return phase_ == Phase::backward; }
  StorageId add_storage(Storage storage);
  KernelNode& add_node(KernelNode node);

  // Backward.
  void find_what_needs_gradients();
  void run_backward(OperatorId op);
  void run_backward_rule(OperatorId op, LowerRule rule);
  void hold_until_done(OperatorId op);
  [[nodiscard]] std::optional<OverwrittenView> enter_overwritten_view(OperatorId op);
  void leave_overwritten_view(const OverwrittenView& overwritten, OperatorId op);
  KernelNode& emit_copy(const TensorView& from, const TensorView& to, const std::string& name,
                        OperatorId op);
  void convert_pending(OperatorId op);
  void deliver_pending(OperatorId op);
  void deliver(const Pending& given, OperatorId op);
  [[nodiscard]] bool is_wanted(const Destination& to) const;
  [[nodiscard]] DataType type_of(const Destination& to) const;
  void add_gradient(Gradient& slot, const TensorView& gradient, OperatorId op);
  void emit_accumulation(const TensorView& sum, const TensorView& more, OperatorId op);
  void release(Gradient& slot);

  // Branches that lead to no loss (dead_ends.cpp).
  [[nodiscard]] std::vector<bool> with_autograd_node() const;
  [[nodiscard]] bool has_gradient(TensorId id) const;
  void hold_what_dead_ends_saved();

  // Gradients of parameters.
  void find_first_users();
  void give_to_parameter(ParameterId id, const TensorView& gradient, OperatorId op);
  void finish_parameters(OperatorId op);
  void finish_parameter(ParameterId id, OperatorId op);
  void accumulate(ParameterId id, const TensorView& gradient, OperatorId op);
  void record_arrival(ParameterId id, const TensorView& gradient, OperatorId op);
  [[nodiscard]] TensorView made_to_stay(const TensorView& gradient, ParameterId id, OperatorId op);
  TensorView add_persistent_gradient(ParameterId id);
  void zero_persistent_gradients();

  // Autocast.
  [[nodiscard]] const CastArguments& casts_of(OperatorId op) const;
  void make_casts(OperatorId op);
  void cast_input(OperatorId op, std::size_t i, DataType type);
  void cast_parameter(OperatorId op, std::size_t i, DataType type);
  [[nodiscard]] std::vector<DataType> formats_read(const Operator& op) const;
  TensorView emit_cast(const TensorView& view, DataType type, const std::string& node,
                       const Storage& copy);
  void hold_what_was_cast(OperatorId op);
  void leave_autocast();
  void run_casts_backward(OperatorId op);

  const ModelGraph& model_;
  const KernelSetTraits& kernel_set_;
  StepGraph graph_;
  Phase phase_ = Phase::forward;
  std::vector<std::size_t> storage_names_;     // by StorageId: a hash
  std::vector<std::size_t> node_names_;        // by NodeId: a hash
  std::vector<TensorView> parameter_views_;    // by ParameterId
  std::vector<bool> tensor_needs_gradient_;    // by TensorId
  std::vector<bool> only_for_losses_;          // by OperatorId: leads to no output
  std::vector<bool> read_by_losses_alone_;     // by TensorId of a model input
  std::vector<TensorView> values_;             // by TensorId
  std::vector<Gradient> gradients_;            // by TensorId
  std::vector<Gradient> arriving_;             // by ParameterId
  std::vector<Gradient> parameter_gradients_;  // by ParameterId: .grad
  std::vector<OperatorId> first_user_;         // by ParameterId: whose backward is the last to give
  std::vector<std::vector<Saved>> saved_;      // by OperatorId
  std::vector<Cast> casts_;                    // in the order made
  std::vector<CastArguments> cast_arguments_;  // by OperatorId; empty: none is converted
  std::vector<CastCopy> cached_casts_;         // by ParameterId: autocast's cache of weights
  std::vector<StorageId> copied_within_;       // arguments that the forward rule's kernels copy
  bool held_by_hand_ = false;                  // by the backward rule that is running
  std::vector<Pending> pending_;               // given by the backward rule that is running
  ScriptVariables variables_;
  std::vector<int> consumers_;    // by TensorId: operators that read it
  std::vector<bool> read_again_;  // by StorageId: several readers, or saved
  std::vector<int> holders_;      // by StorageId: gradients that refer to it
  ContiguousLayouts layouts_;
};

/// Adds 16-bit gradients to float32 ones as they are made, and puts those in their place
/// (master_gradients.cpp). Precondition: no NodeId of the graph is held anywhere yet.
void keep_float32_gradients(StepGraph& graph, const ModelGraph& model);

/// Appends the optimizer's kernel calls (lower_update.cpp). `parameters`: by ParameterId.
void lower_update(StepGraph& graph, const ModelGraph& model,
                  const std::vector<TensorView>& parameters);

}  // namespace stowage
