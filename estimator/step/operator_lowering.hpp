// OperatorLowering: what a catalogue row's lowering rules are written against.
//
// One object stands for one operator. `forward` rules read the inputs' views and
// set the outputs'; `backward` rules read the outputs' gradients and give the inputs' and the
// parameters' away. Storages are made here, kernel calls are emitted here, in execution order.
// Whatever a backward rule will need is saved by role, as autograd does, and found again by role.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

class StepBuilder;  // step_builder.hpp

/// A kernel call's arguments as a rule lists them: `{x, w}`, or a vector. A list is one of
/// references, so that each view is copied once, into its place.
class KernelArguments {
 public:
  struct Listed {
    const TensorView* view;
    Listed(const TensorView& listed) : view(&listed) {}  // NOLINT: a view is an argument
  };
  KernelArguments() = default;
  KernelArguments(std::initializer_list<Listed> list) {
    views_.reserve(list.size());
    for (const Listed& listed : list) views_.push_back(*listed.view);
  }
  KernelArguments(std::vector<TensorView> views)
      : views_(std::move(views)) {}  // NOLINT: so is a vector
  [[nodiscard]] std::vector<TensorView> taken() && { return std::move(views_); }

 private:
  std::vector<TensorView> views_;
};

/// What a kernel call is made of besides its arguments.
struct NodeExtras {
  Attributes attributes;  ///< added to the operator's own
  std::vector<StorageId> temporaries = {};
  std::vector<StorageId> holds = {};  ///< see KernelNode::holds
  Affine flops = 0;
  int convolution = -1;  ///< from add_convolution
};

class OperatorLowering {
 public:
  OperatorLowering(StepBuilder& builder, OperatorId op);

  [[nodiscard]] const Operator& op() const;
  [[nodiscard]] const Attributes& attributes() const { return op().attributes; }
  [[nodiscard]] bool training() const;  ///< mode is train
  /// Of the card whose kernels PyTorch chooses.
  [[nodiscard]] double compute_capability() const;
  [[nodiscard]] bool efficient_takes_groups() const;

  // Values, in the formats in which autocast hands them over (LoweringRules::casts_its_inputs).
  [[nodiscard]] int input_count() const;
  [[nodiscard]] const TensorView& input(int i = 0) const;
  [[nodiscard]] bool input_needs_gradient(int i = 0) const;
  /// Nothing but this operator reads the input's storage from here on: no other consumer of any
  /// tensor in it, and nobody saved it for backward.
  [[nodiscard]] bool may_overwrite_input(int i = 0) const;
  /// The parameter as the row numbers it (parameters, then buffers).
  [[nodiscard]] const TensorView& parameter(int i) const;
  [[nodiscard]] int parameter_count() const;
  [[nodiscard]] bool parameter_needs_gradient(int i) const;
  /// Whether anything upstream needs a gradient, so that tensors must be saved.
  [[nodiscard]] bool needs_gradient() const;
  [[nodiscard]] const TensorType& output_type(int i = 0) const;
  [[nodiscard]] const TensorView& output(int i = 0) const;

  // Making storages and views.
  /// A new contiguous storage of the output's type, which becomes output i.
  TensorView new_output(int i = 0);
  /// The same, its axes in memory in the order of `like`, which has as many (see dense_strides).
  TensorView new_output_like(const TensorView& like, int i = 0);
  /// A new contiguous storage named "<operator>.<suffix>".
  TensorView new_tensor(std::string_view suffix, const Shape& shape, DataType type,
                        StorageClass storage_class);
  /// The same, there before the step and after it (carries_over): a cache that a step writes into.
  TensorView new_lasting_tensor(std::string_view suffix, const Shape& shape, DataType type,
                                StorageClass storage_class);
  /// The same, made by an earlier step, and let go of after its last use in this one.
  TensorView new_inherited_tensor(std::string_view suffix, const Shape& shape, DataType type,
                                  StorageClass storage_class);
  /// The storage of the view is kept to the step's end: the next step inherits it.
  void keep_to_end(const TensorView& view);
  /// A storage that lives within one node.
  StorageId new_temporary(std::string_view suffix, Affine bytes);
  void set_output(int i, TensorView view);

  // Emitting kernel calls; the name is "<operator>.<suffix>".
  KernelNode& emit(Kernel kernel, std::string_view suffix, KernelArguments reads,
                   KernelArguments writes, NodeExtras extras = {});
  int add_convolution(ConvolutionCall call);
  /// `view` if it is contiguous, else a copy (emits it). `channels_last`: contiguous with its
  /// channels innermost.
  TensorView contiguous(const TensorView& view, std::string_view suffix,
                        bool channels_last = false);
  /// The same of a copy that PyTorch's operator makes within itself: autograd saves what it was
  /// given, and the footprint counts the copy as workspace.
  TensorView contiguous_within(const TensorView& view, std::string_view suffix,
                               bool channels_last = false);
  /// `view` if it is of that format, else a copy that is (emits it).
  TensorView cast(const TensorView& view, DataType type, std::string_view suffix);

  // Saving for backward. Nothing is saved unless needs_gradient().
  void save(std::string_view role, const TensorView& view);
  [[nodiscard]] const TensorView& saved(std::string_view role) const;
  [[nodiscard]] bool has_saved(std::string_view role) const;

  // Backward.
  /// The gradient that has arrived at output i. Precondition: has_output_gradient(i).
  [[nodiscard]] const TensorView& output_gradient(int i = 0) const;
  [[nodiscard]] bool has_output_gradient(int i = 0) const;
  /// A new contiguous storage for the gradient of input i ("<operator>.grad_input<i>"), in the
  /// format of input(i).
  TensorView new_input_gradient(int i = 0);
  /// A new contiguous storage for the gradient of parameter i, in the format of parameter(i).
  TensorView new_parameter_gradient(int i);
  /// The rule stands for several autograd nodes and says itself (NodeExtras::holds) how long each
  /// saved tensor lives; otherwise all of them live to the rule's last kernel call.
  void hold_by_hand();
  /// The gradients given so far arrive, and are summed, before the rule goes on: what it did up to
  /// here was an autograd node of its own.
  void deliver_gradients();
  /// Adds to what the last kernel call holds.
  void also_hold(std::span<const StorageId> storages);
  /// The storage is what backward() starts from, and lives until it returns.
  void keep_through_backward(const TensorView& gradient);
  /// An autograd node has the tensor as an attribute of its own (a custom Function's ctx), which
  /// lives as long as the graph does: until the script's `loss`, which has the graph, is assigned
  /// anew.
  void keep_with_graph(const TensorView& view);
  /// Hands a gradient on; a second one for the same tensor is added to the first. One in another
  /// format than the tensor's is converted.
  void give_input_gradient(int i, const TensorView& gradient);
  void give_parameter_gradient(int i, const TensorView& gradient);

 private:
  StepBuilder& builder_;
  OperatorId id_;
};

// Views. All checked against Affine arithmetic; see torch/ATen's computeStride for the reshape
// rule.
[[nodiscard]] TensorView contiguous_view(StorageId storage, Shape shape, DataType type);
[[nodiscard]] bool is_contiguous(const TensorView& view);
/// The same, or with the channels of an image or a volume innermost.
[[nodiscard]] bool is_contiguous(const TensorView& view, bool channels_last);
/// What autograd's Tensor::suggest_memory_format says of an image or a volume: its channels (axis
/// 1) lie innermost (c10/core/MemoryFormat.h, is_channels_last_strides_2d_s4). The elements need
/// not lie densely.
[[nodiscard]] bool suggests_channels_last(const TensorView& view);
/// Two tensors of one shape lie in memory in the same way; axes of length 1 decide nothing.
[[nodiscard]] bool same_memory_format(const TensorView& a, const TensorView& b);
/// The elements fill a run of memory without gaps or overlap, in some order of the axes.
[[nodiscard]] bool is_dense(const TensorView& view);
[[nodiscard]] TensorView permuted(const TensorView& view, std::span<const std::int64_t> axes);
/// The axes of an image or a volume in the order in which they lie in memory with channels
/// innermost: 0, 2, 3, 1.
[[nodiscard]] std::vector<std::int64_t> channels_last_order(std::size_t rank);
/// The contiguous view `made` of an image or a volume with its channels innermost, if wanted.
[[nodiscard]] TensorView laid_out(const TensorView& made, bool channels_last);
[[nodiscard]] TensorView sliced(const TensorView& view, std::size_t axis, Affine start,
                                Affine length);
/// The view under another shape where its strides allow it without a copy.
[[nodiscard]] std::optional<TensorView> reshaped(const TensorView& view, const Shape& shape);
[[nodiscard]] Affine byte_count(const TensorView& view);  ///< elements * element size
/// The strides of a dense tensor of `shape` whose axes lie in the order of `strides`: those of
/// empty_like, and of an element-by-element result (TensorIterator::reorder_dimensions).
[[nodiscard]] Shape dense_strides(const Shape& shape, const Shape& strides);
/// The contiguous view `made` under the memory order of `like`, if that has its shape.
[[nodiscard]] TensorView ordered_like(const TensorView& made, const TensorView& like);

}  // namespace stowage
