// WorkspaceSource: who says how much scratch the engines of a convolution and of cuDNN's attention
// want.
//
// The estimator knows no cuDNN: a source is handed to it. gpu_probe/ has one that asks cuDNN for a
// described device; rule_workspace_source.hpp has the documented rule that stands in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/data_type.hpp"
#include "estimator/base/shared.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// One way to run a kernel: an engine of cuDNN, or the rule's stand-in.
struct Engine {
  std::string name;  ///< "cudnn 9.19.0 eng0 k2=12", "rule"
  Bytes workspace;
};

/// A kernel's engines, the runtime's first choice first. Cheap to copy: the convolutions of a
/// network that ask the same question share the answer (base/shared.hpp).
class Engines {
 public:
  Engines() = default;
  Engines(std::initializer_list<Engine> engines) : engines_(std::vector(engines)) {}
  explicit Engines(std::vector<Engine> engines) : engines_(std::move(engines)) {}

  [[nodiscard]] std::size_t size() const { return engines_->size(); }
  [[nodiscard]] bool empty() const { return engines_->empty(); }
  [[nodiscard]] auto begin() const { return engines_->begin(); }
  [[nodiscard]] auto end() const { return engines_->end(); }
  [[nodiscard]] const Engine& front() const { return engines_->front(); }
  [[nodiscard]] const std::vector<Engine>& list() const { return *engines_; }
  [[nodiscard]] const Engine& operator[](std::size_t i) const { return (*engines_)[i]; }

 private:
  Shared<std::vector<Engine>> engines_;
};

/// A convolution at a batch size. Extents are of the convolution's own x, w, y; the transposed one
/// is asked for as the data gradient that it is.
struct ConvolutionQuery {
  ConvolutionCall::Direction direction = ConvolutionCall::Direction::forward;
  DataType type = DataType::float32;
  std::vector<std::int64_t> x, w, y;  ///< [n, c, h, w], [k, c/groups, r, s], [n, k, p, q]
  std::vector<std::int64_t> stride, padding, dilation;
  std::int64_t groups = 1;
  TensorLayout layout = TensorLayout::contiguous;
  ConvolutionSettings settings = {};  ///< of other types than float32, tf32 is left true
  auto operator<=>(const ConvolutionQuery&) const = default;
};

/// Extents times the element's size.
[[nodiscard]] Bytes bytes_of(const std::vector<std::int64_t>& shape, DataType type);
/// The shape of what the convolution computes: y, x or w.
[[nodiscard]] const std::vector<std::int64_t>& result_shape(const ConvolutionQuery& query);

/// A call of scaled dot product attention that PyTorch gives to cuDNN, at a batch size.
struct AttentionQuery {
  enum class Direction { forward, backward };
  struct Operand {
    std::vector<std::int64_t> shape, strides;  ///< [n, heads, length, features]; in elements
    auto operator<=>(const Operand&) const = default;
  };
  Direction direction = Direction::forward;
  DataType type = DataType::bfloat16;
  Operand query, key, value, output;
  Operand gradient;  ///< the output's, as the kernel gets it; forward: empty
  Operand bias;      ///< expanded to the scores' shape; empty: none
  bool causal = false;
  bool statistics = true;  ///< forward: the rows' logsumexp is kept for backward
  double dropout = 0;
  auto operator<=>(const AttentionQuery&) const = default;
};

enum class WorkspaceOrigin { none, cudnn, rule, mixed };
[[nodiscard]] std::string_view to_string(WorkspaceOrigin origin);

struct WorkspaceAnswer {
  /// What the runtime would take with benchmark off, and what it tries next where that does not
  /// fit. Never empty.
  std::vector<Engine> engines;
  WorkspaceOrigin origin = WorkspaceOrigin::rule;
  /// With settings.benchmark: every plan, in the order in which PyTorch times them; workspaces
  /// recur. Else empty. benchmark.hpp says what becomes of them.
  std::vector<Engine> benchmark = {};
};

/// Not thread-safe: one source a thread.
class WorkspaceSource {
 public:
  virtual ~WorkspaceSource() = default;
  [[nodiscard]] virtual WorkspaceAnswer engines(const ConvolutionQuery& query) = 0;
  /// One engine: PyTorch takes the first that can be built, and no other where that one's workspace
  /// does not fit. It counts what cudnn-frontend keeps there beside cuDNN itself. A source that
  /// knows nothing of cuDNN's engines counts that alone (attention_workspace.hpp).
  [[nodiscard]] virtual WorkspaceAnswer attention_engines(const AttentionQuery& query);
};

/// The answer without the engines that want more than `limit`, which is TensorFlow's scratch limit
/// (TF_CUDNN_WORKSPACE_LIMIT_IN_MB; 4 GiB unless set). Where all of them do, the least is left.
[[nodiscard]] WorkspaceAnswer within_limit(WorkspaceAnswer answer, Bytes limit);

}  // namespace stowage
