// StepDocument: a step with its settings and layers, and the step file that holds it
// (docs/step-file.md has the format).
//
// It is self-contained: later stages need neither the description that it was lowered from nor the
// operator catalogue. Sizes are affine in the batch, so that one document serves every batch,
// except for a step that was recorded at a single batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/base/precision.hpp"
#include "estimator/base/runtime.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A layer: a row of the table that `summary` prints.
struct Layer {
  std::string name;             ///< its path: "layer1.0.conv1"
  std::string op;               ///< "conv2d"
  Shape output;                 ///< of its first result
  std::int64_t parameters = 0;  ///< elements; a tied parameter counts for its first owner
  Affine flops = 0;             ///< of its forward pass
  Affine saved_bytes = 0;       ///< bytes saved for backward that no earlier layer has saved
  bool operator==(const Layer&) const = default;
};

/// A module that runs once in the forward of a recorded step.
struct RecordedModule {
  struct Input {
    std::int64_t number = 0;  ///< among the tensors of the call's positional arguments
    TensorView view;
    NodeId held_until = {};  ///< as SavedCall's
    bool operator==(const Input&) const = default;
  };
  std::string path;
  bool is_sequence = false;  ///< an nn.Sequential: its children run one after the other
  std::vector<Input> inputs;
  bool operator==(const RecordedModule&) const = default;
};

struct StepDocument {
  std::string written_by;  ///< the program: "stowage 0.1.0"
  std::string source;      ///< whose implementation the model is: "torchvision resnet18"
  std::shared_ptr<const StepGraph> graph;
  /// The same model lowered for inference, in the process that trains; null: not included.
  std::shared_ptr<const StepGraph> evaluation;
  Runtime runtime = default_runtime;  ///< the runtime that the step was made for
  Precision precision = Precision::fp32;
  std::int64_t seq = 0;                    ///< 0: the model has no symbol `seq`
  std::int64_t accumulation = 1;           ///< micro-batches before an update
  std::optional<std::int64_t> batch = {};  ///< batch of one micro-batch, as made
  bool fixed_batch = false;  ///< it was recorded at `batch`, and sizes at other batches are unknown
  std::vector<Parameter> parameters;  ///< by ParameterId
  /// Of a recorded step, ascending: trained parameters that got a gradient and that no optimizer
  /// updated, so that neither their update nor its state is in the graph.
  std::vector<ParameterId> not_updated;
  std::vector<Layer> layers;
  bool has_costs = false;               ///< the layers' flops and saved_bytes are known
  std::vector<RecordedModule> modules;  ///< in the order of their calls
  /// Bytes of all layers' results that have memory of their own, for the rule of thumb.
  std::optional<Affine> result_bytes = {};
  Diagnostics warnings;  ///< warnings given when it was made
};

inline constexpr std::string_view step_format = "stowage-step";
inline constexpr int step_version = 1;

/// Whether the recorder of PyTorch's calls made it.
[[nodiscard]] inline bool was_recorded(const StepDocument& document) {
  return document.written_by.starts_with("stowage.record");
}

/// Whether a text is a step file, by its first member alone.
[[nodiscard]] bool is_step_file(std::string_view text);

[[nodiscard]] std::string write_step(const StepDocument& document);

/// Errors, with their place: not JSON; another format or version; an unknown member or word; a
/// number out of its range; the errors of check_step_graph.hpp.
[[nodiscard]] Result<StepDocument> read_step(SourceTextPtr source);

/// The graph as text in the step file's form, without the places of its origins. Two graphs are
/// equal except for those places if and only if their texts are equal.
[[nodiscard]] std::string canonical_text(const StepGraph& graph);

}  // namespace stowage
