// StepBuilder: the step graph under construction, and the gradients on their way.
//
// Gradients are summed as autograd's input buffers do: the first to arrive is kept, a later one is
// added in place if nothing else holds the first, else into a new storage
// (torch/csrc/autograd/input_buffer.cpp, PyTorch 2.x). A gradient handed to several tensors (add's
// backward) is one storage with several holders until they are consumed.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimator/model/model_graph.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

class StepBuilder {
 public:
  StepBuilder(const ModelGraph& model, const LoweringSettings& settings);

  /// Builds the whole step. Precondition: every operator has a forward rule for the kernel set.
  [[nodiscard]] StepGraph build() &&;

 private:
  friend class OperatorLowering;

  struct Gradient {
    TensorView view;
    bool present = false;
    int micro_batch = 0;  // that gave it
  };
  struct Saved {
    std::string role;
    TensorView view;
  };
  /// A gradient that a backward rule gave away; delivered when the rule is done, as autograd does.
  struct Pending {
    TensorId tensor;  // one of the two
    ParameterId parameter;
    TensorView gradient;
  };

  void make_parameter_storages();
  void run_micro_batch(int micro_batch);
  void make_inputs(int micro_batch);
  void run_forward(OperatorId op, int micro_batch);
  void run_backward(OperatorId op, int micro_batch);
  void hold_until_done(OperatorId op, std::size_t first_node);
  void deliver(OperatorId op, int micro_batch);
  void record_saved();
  void mark_held_results();
  void find_what_needs_gradients();
  void find_what_only_losses_read();
  [[nodiscard]] bool is_loss(OperatorId op) const;

  StorageId add_storage(Storage storage);
  [[nodiscard]] std::string unique_name(std::string name);
  KernelNode& add_node(KernelNode node);
  [[nodiscard]] std::string suffixed(std::string name, int micro_batch) const;

  void add_gradient(Gradient& slot, const TensorView& gradient, OperatorId op, int micro_batch);
  void release(Gradient& slot);

  const ModelGraph& model_;
  StepGraph graph_;
  Phase phase_ = Phase::forward;
  std::vector<StorageId> parameter_storage_;    // by ParameterId
  std::vector<bool> tensor_needs_gradient_;     // by TensorId
  std::vector<bool> only_for_losses_;           // by OperatorId: leads to no output
  std::vector<TensorView> values_;              // by TensorId, of the current micro-batch
  std::vector<Gradient> gradients_;             // by TensorId, of the current micro-batch
  std::vector<Gradient> parameter_gradients_;   // by ParameterId, over all micro-batches
  std::vector<std::vector<Saved>> saved_;       // by OperatorId, of the current micro-batch
  bool held_by_hand_ = false;                   // by the backward rule that is running
  std::vector<Pending> pending_;                // given by the backward rule that is running
  std::vector<StorageId> first_gradients_;      // what backward() starts from
  std::vector<int> consumers_;                  // by TensorId: operators that read it
  std::vector<bool> read_again_;                // by StorageId: several readers, or saved
  std::vector<int> holders_;                    // by StorageId: gradients that refer to it
  std::unordered_map<std::size_t, int> names_;  // by a name's hash, how often it was asked for
};

/// Adds 16-bit gradients to float32 ones as they are made, and puts those in their place
/// (master_gradients.cpp). Precondition: no NodeId of the graph is held anywhere yet.
void keep_float32_gradients(StepGraph& graph, const ModelGraph& model);

/// Appends the optimizer's kernel calls (lower_update.cpp).
void lower_update(StepGraph& graph, const ModelGraph& model,
                  const std::vector<StorageId>& parameter_storage);

}  // namespace stowage
