// What PyTorch said of a model (tests/reference/models, both forms), and ours to hold beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/model/model_options.hpp"

namespace stowage::reference {

/// `count` storages of one size that autograd keeps for the same uses.
struct SavedStorages {
  std::string kind;  ///< "parameter", "buffer", "input", "target" or "other"
  std::int64_t bytes = 0;
  int count = 1;
  std::string uses;  ///< "ReluBackward0.result, ConvolutionBackward0.input"
};

/// Leaf modules of one type and output shape.
struct LayerShapes {
  std::string type;  ///< PyTorch's: "Conv2d"
  std::vector<std::int64_t> shape;
  int count = 1;
};

struct PhasePeak {
  std::int64_t bytes = 0;
  std::string op;  ///< PyTorch's, after whose allocations it is reached
};

/// Live bytes over two steps with one optimizer.
struct StepTrace {
  std::string optimizer;
  std::int64_t first_peak = 0;                ///< of the first step
  std::int64_t rounded_peak = 0;              ///< of the second, sizes rounded up to 512
  std::map<std::string, PhasePeak> phases{};  ///< of the second: forward, backward, optimizer
};

struct ReferenceModel {
  std::string file;       ///< without folder and extension
  std::string model;      ///< ours, in configs/models
  ModelOptions options;   ///< under which ours is that one
  std::string precision;  ///< "fp32"
  TensorLayout layout = TensorLayout::contiguous;
  std::string variant;                  ///< empty, or what the training loop does otherwise
  bool is_fine_tuned = false;           ///< adapters, a quantised base, checkpointed blocks
  std::int64_t trained_parameters = 0;  ///< of a fine-tuned one
  std::int64_t batch = 0;
  std::int64_t seq = 0;  ///< 0: not a language model
  bool layers_in_order = false;
  std::int64_t parameters = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::vector<LayerShapes> layers;
  std::vector<SavedStorages> saved;
  std::vector<StepTrace> traces;
};

/// Every committed reference file whose model is described, sorted by name. Read once.
[[nodiscard]] const std::vector<ReferenceModel>& reference_models();

/// So they are, in fp32, laid out as written, the training loop the usual one.
[[nodiscard]] bool is_plain(const ReferenceModel& reference);

/// Our description under the reference's settings.
[[nodiscard]] ModelGraph our_model(const ReferenceModel& reference);

[[nodiscard]] ModelGraph our_model(const std::string& name, const ModelOptions& options);

/// Our step at the reference's batch, without workspaces.
[[nodiscard]] SizedStep our_step(const ModelGraph& model, const ReferenceModel& reference,
                                 const OptimizerSettings& optimizer);

/// Sizes in bytes with how often each occurs.
using Multiset = std::map<std::int64_t, int>;

/// "12 x 4096, 1 x 512" of what `a` has and `b` lacks.
[[nodiscard]] std::string surplus(const Multiset& a, const Multiset& b);

}  // namespace stowage::reference
