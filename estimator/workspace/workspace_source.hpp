// WorkspaceSource: the interface that answers how much workspace a convolution and cuDNN's
// attention need.
//
// The estimator does not use cuDNN; the caller passes a source. gpu_probe/ has one that asks cuDNN
// for a described device; rule_workspace_source.hpp has the documented rule, which replaces it if
// there is no cuDNN.
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

/// A convolution at a batch size. Extents are those of the convolution's x, w and y; a transposed
/// convolution is a query for the data gradient.
struct ConvolutionQuery {
  ConvolutionCall::Direction direction = ConvolutionCall::Direction::forward;
  DataType type = DataType::float32;
  std::vector<std::int64_t> x, w, y;  ///< [n, c, h, w], [k, c/groups, r, s], [n, k, p, q]
  std::vector<std::int64_t> stride, padding, dilation;
  std::int64_t groups = 1;
  TensorLayout layout = TensorLayout::contiguous;
  ConvolutionSettings settings = {};  ///< types other than float32 leave tf32 true
  auto operator<=>(const ConvolutionQuery&) const = default;
};

/// The product of the extents and the element's size.
[[nodiscard]] Bytes bytes_of(const std::vector<std::int64_t>& shape, DataType type);
/// The shape of the convolution's result: y, x or w.
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
  Operand gradient;  ///< the output's gradient that the kernel gets; forward: empty
  Operand bias;      ///< the bias, expanded to the scores' shape; empty: none
  bool causal = false;
  bool statistics = true;  ///< forward: the logsumexp of each row is saved for backward
  double dropout = 0;
  auto operator<=>(const AttentionQuery&) const = default;
};

enum class WorkspaceOrigin { none, cudnn, rule, mixed };
[[nodiscard]] std::string_view to_string(WorkspaceOrigin origin);

struct WorkspaceAnswer {
  /// The engines in the order in which the runtime tries them with benchmark off. Never empty.
  std::vector<Engine> engines;
  WorkspaceOrigin origin = WorkspaceOrigin::rule;
  /// With settings.benchmark: every plan, in the order in which PyTorch times them; several may
  /// have the same workspace. Else empty. See benchmark.hpp.
  std::vector<Engine> benchmark = {};
};

/// Not thread-safe: one source a thread.
class WorkspaceSource {
 public:
  virtual ~WorkspaceSource() = default;
  [[nodiscard]] virtual WorkspaceAnswer engines(const ConvolutionQuery& query) = 0;
  /// Answers with one engine: PyTorch takes the first that can be built, and no other if its
  /// workspace does not fit. The workspace includes cudnn-frontend's part. A source that does not
  /// know cuDNN's engines counts only that part (attention_workspace.hpp).
  [[nodiscard]] virtual WorkspaceAnswer attention_engines(const AttentionQuery& query);
};

/// The answer without the engines that need more than `limit`, TensorFlow's workspace limit
/// (TF_CUDNN_WORKSPACE_LIMIT_IN_MB; 4 GiB unless set). If all of them do, the smallest remains.
[[nodiscard]] WorkspaceAnswer within_limit(WorkspaceAnswer answer, Bytes limit);

}  // namespace stowage
