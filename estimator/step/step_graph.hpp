// StepGraph: one step of a runtime as kernel calls over storages, for any batch size.
//
// A node is one kernel call; nodes stand in the order in which the runtime runs them, so a NodeId
// is also a step number. A storage is an alias class: every view and every in-place result of a
// tensor share one. A storage has versions: version 0 is what it holds before its first write in
// the step (parameters, inputs, last step's gradients), and each write starts the next one.
// Everything downstream (lifetimes, the planner, the executor, the validator) reads this, and sizes
// it at a batch with SizedStep (sized_step.hpp). Immutable once built.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/attributes.hpp"
#include "estimator/base/data_type.hpp"
#include "estimator/base/id.hpp"
#include "estimator/base/kernel_set.hpp"
#include "estimator/base/shape.hpp"
#include "estimator/base/shared.hpp"
#include "estimator/base/tensor_layout.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/kernel.hpp"
#include "estimator/step/lowering_settings.hpp"
#include "estimator/step/script_holds.hpp"

namespace stowage {

enum class Phase { forward, loss, backward, update };

/// What a storage is, as the footprint names it.
enum class StorageClass {
  input,
  augmented_input,  ///< a copy of the model's first floating-point input, made on the GPU
  parameter,
  parameter_copy,  ///< a parameter in autocast's lower format
  buffer,
  gradient,  ///< of a parameter
  optimizer_state,
  activation,  ///< produced by forward, and the gradients that flow back through it
  activation_gradient,
  saved_auxiliary,  ///< saved for backward and nothing else: masks, statistics, indices
  workspace,        ///< a kernel's scratch: asked of a WorkspaceSource, or known by formula
  temporary,        ///< lives within one node, or from one node of a library's update to another
  kv_cache,         ///< keys and values of earlier tokens, and what belongs to them (serving/)
};
inline constexpr int storage_class_count = static_cast<int>(StorageClass::kv_cache) + 1;

/// What a storage does at the step's two ends. All lifetimes are half-open intervals of nodes.
enum class Persistence {
  transient,   ///< from its first touch to its last, or as long as ScriptHolds has it
  persistent,  ///< the whole step: parameters, buffers, and in steady steps optimizer state
  from_host,   ///< made on the host before the step (inputs); on the GPU from its upload, which the
               ///< runtimes do before node 0, to its last touch
};

/// Where nodes and storages come from. `lower` makes one for each operator of the model.
struct Origin {
  std::string layer;  ///< the layer's path: "layer1.0.conv1"
  std::string place;  ///< in the source, where there is one: "resnet18.yaml:12:9"
  bool operator==(const Origin&) const = default;
};

struct Storage {
  std::string name;  ///< unique: "conv1.weight", "conv1", "conv1.grad", "adam.conv1.weight.exp_avg"
  StorageClass storage_class = StorageClass::activation;
  Persistence persistence = Persistence::transient;
  Affine bytes;
  OperatorId op;  ///< whose result, parameter or state it is (a tied one: the first); none: inputs
  ParameterId parameter;      ///< for parameter, buffer, gradient, optimizer_state
  bool carries_over = false;  ///< written in a step and read in the next (parameters that train,
                              ///< state, running statistics); persistent storages only
  bool before_first_step = false;  ///< of optimizer state: it is made with the optimizer, not by
                                   ///< the first step
  bool operator==(const Storage&) const = default;
};

/// A kernel argument: a storage seen as a tensor. In the `stowage` set strides are contiguous and
/// the offset is 0.
struct TensorView {
  StorageId storage;
  DataType type = DataType::float32;
  bool is_view = false;  ///< a view in autograd's sense: its base is kept alive beside it
  Shape shape;
  Shape strides;      ///< in elements
  Affine offset = 0;  ///< in elements
  bool operator==(const TensorView&) const = default;
};

/// How a convolution's window moves: one number a spatial axis.
struct ConvolutionWindow {
  std::vector<std::int64_t> stride, padding, dilation;
  std::int64_t groups = 1;
  bool operator==(const ConvolutionWindow&) const = default;
};

/// What a WorkspaceSource is asked about; sizes still affine.
struct ConvolutionCall {
  enum class Direction { forward, backward_data, backward_filter };
  Direction direction = Direction::forward;
  TensorType x, w, y;  ///< the convolution's own x, w, y (for the transposed one: y and x swapped)
  TensorLayout layout = TensorLayout::contiguous;  ///< of x, w and y alike
  Shared<ConvolutionWindow> window;  ///< one for all calls in a row that have the same
  bool operator==(const ConvolutionCall&) const = default;
};

struct KernelNode {
  std::string name;  ///< unique: "conv1.forward", "conv1.backward.data", "update.conv1.weight"
  Kernel kernel = Kernel::copy;
  Phase phase = Phase::forward;
  OperatorId op;                  ///< its origin; none: an update
  int micro_batch = 0;            ///< which repetition of forward and backward
  std::vector<TensorView> reads;  ///< in the order of the kernel's signature
  std::vector<TensorView> writes;
  std::vector<StorageId> temporaries;  ///< live during this node only (see StorageClass)
  std::vector<StorageId> holds;        ///< kept alive up to this node though not read (autograd)
  Attributes attributes;
  Affine flops;          ///< a multiply-add counts two
  int convolution = -1;  ///< index into StepGraph::convolutions, or -1
  Shared<std::string> foreign_kernel =
      {};  ///< Kernel::foreign: what whoever made the step calls it
  bool operator==(const KernelNode&) const = default;
};

/// One call of autograd's hook for saved tensors in a recorded program (docs/step-file.md).
struct SavedCall {
  std::string key;      ///< "layer1.0.conv1#0": the module, and which of its calls
  TensorView view;      ///< how the tensor sees its storage
  NodeId packed_after;  ///< the last node that had run; none: no node had
  NodeId
      unpacked_before;  ///< the first node that ran after backward asked for it; none: it did not
  NodeId held_until = {};  ///< the last node during which the script holds it too; none: not known
  bool operator==(const SavedCall&) const = default;
};

struct SavedTensor {
  OperatorId op;  ///< who saved it
  StorageId storage;
  std::string role;                    ///< "input", "weight", "result", "mask", "indices", ...
  std::optional<SavedCall> call = {};  ///< of a recorded program; none: lowered, or not recorded
  bool operator==(const SavedTensor&) const = default;
};

/// Where a micro-batch's gradient of a parameter is whole (PyTorch's AccumulateGrad). The first
/// micro-batch keeps it, or makes the lasting gradient out of it; a later one adds its own to the
/// lasting one, StepGraph::gradients.
struct GradientArrival {
  ParameterId parameter;
  NodeId after;         ///< it is whole when this node has run
  TensorView gradient;  ///< in the first micro-batch
  OperatorId op;        ///< origin of the node that adds; its name is "<layer>.sum_gradients"
  bool operator==(const GradientArrival&) const = default;
};

/// A tensor that the training script, or backward() itself, keeps alive in a variable.
struct ScriptVariable {
  enum class Kind {
    input,           ///< a batch, or a copy of it: until the next micro-batch's has taken its place
    result,          ///< `output` and `loss`: until the next micro-batch's, or the next step's, has
    first_gradient,  ///< what backward() starts from: until it returns
  };
  Kind kind = Kind::input;
  StorageId storage;
  NodeId assigned_after;  ///< of a result: the node after which the variable has it
  bool operator==(const ScriptVariable&) const = default;
};

/// The part of the step that is there once for each micro-batch, and what rewriting has to know to
/// repeat it (rewrite/micro_batches.hpp). In a step of several this is the first one; the others'
/// nodes follow behind end_node, their storages behind end_storage.
struct MicroBatch {
  NodeId first_node, end_node;  ///< half-open: zero_grad runs before it, the update after it
  /// Half-open. Persistent ones among these are there once, like those outside.
  StorageId first_storage, end_storage;
  std::vector<NodeId> first_only;  ///< nodes that make a lasting gradient out of one that arrived:
                                   ///< later micro-batches add instead; ascending
  std::vector<GradientArrival> arrivals;  ///< by `after`; none of gradients that persist, to which
                                          ///< every micro-batch adds
  std::vector<ScriptVariable> variables;  ///< in the order in which they are let go
  bool operator==(const MicroBatch&) const = default;
};

/// What training on several GPUs keeps of a GPU's share in the CPU's memory (offload).
struct HostBuffer {
  std::string name;
  std::int64_t bytes = 0;
  bool pinned = false;  ///< page-locked
  bool operator==(const HostBuffer&) const = default;
};

struct StepGraph {
  LoweringSettings settings;
  std::string model;
  std::vector<Origin> origins;  ///< by OperatorId
  std::vector<Storage> storages;
  ScriptHolds script_holds;  ///< of storages that an eager training script keeps
  std::vector<KernelNode> nodes;
  std::vector<ConvolutionCall> convolutions;  ///< one a node that has one, in the nodes' order
  std::vector<SavedTensor> saved;             ///< of one micro-batch
  std::vector<TensorView> inputs;             ///< the model's inputs, micro-batch by micro-batch
  TensorView output;                          ///< of the last micro-batch
  std::vector<TensorView> losses;             ///< one a micro-batch
  std::vector<TensorView> gradients;          ///< by ParameterId; storage none: no gradient
  MicroBatch micro_batch;                     ///< what of all this is there for each micro-batch
  std::int64_t host_state_bytes = 0;  ///< what the optimizer keeps on the CPU: its step counters
  /// What the optimizer keeps in unified memory, outside the runtime's allocator: on the GPU while
  /// there is room, and else on the host.
  std::int64_t managed_state_bytes = 0;
  std::vector<HostBuffer> host_buffers;  ///< of this GPU's process, for the whole training

  [[nodiscard]] const Storage& storage(StorageId id) const { return storages[id.index()]; }
  [[nodiscard]] const KernelNode& node(NodeId id) const { return nodes[id.index()]; }
  [[nodiscard]] const KernelSetTraits& kernel_set() const { return traits(settings.kernels); }
  /// The layer's path; none: "".
  [[nodiscard]] std::string_view layer(OperatorId id) const {
    return id.valid() ? std::string_view(origins[id.index()].layer) : std::string_view();
  }
  bool operator==(const StepGraph&) const = default;
};

/// The kernel's own name, a foreign one's as the step has it.
[[nodiscard]] std::string_view kernel_name(const KernelNode& node);

[[nodiscard]] std::string_view to_string(Phase phase);
[[nodiscard]] std::string_view to_string(StorageClass storage_class);

}  // namespace stowage
