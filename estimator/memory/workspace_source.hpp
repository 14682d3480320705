// WorkspaceSource: who says how much scratch a convolution's engines want.
//
// The estimator knows no cuDNN: a source is handed to it. gpu_probe/ has one that asks cuDNN for a
// described device; rule_workspace_source.hpp has the documented rule that stands in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/data_type.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// One way to run a kernel: an engine of cuDNN, or the rule's stand-in.
struct Engine {
  std::string name;  ///< "cudnn 9.19.0 eng0 k2=12", "rule"
  Bytes workspace;
};

/// A convolution at a batch size. Extents are of the convolution's own x, w, y.
struct ConvolutionQuery {
  ConvolutionCall::Direction direction = ConvolutionCall::Direction::forward;
  DataType type = DataType::float32;
  std::vector<std::int64_t> x, w, y;  ///< [n, c, h, w], [k, c/groups, r, s], [n, k, p, q]
  std::vector<std::int64_t> stride, padding, dilation;
  std::int64_t groups = 1;
  auto operator<=>(const ConvolutionQuery&) const = default;
};

enum class WorkspaceOrigin { none, cudnn, rule, mixed };
[[nodiscard]] std::string_view to_string(WorkspaceOrigin origin);

struct WorkspaceAnswer {
  std::vector<Engine> engines;  ///< never empty; the first is what the runtime would take
  WorkspaceOrigin origin = WorkspaceOrigin::rule;
};

/// Not thread-safe: one source a thread.
class WorkspaceSource {
 public:
  virtual ~WorkspaceSource() = default;
  [[nodiscard]] virtual WorkspaceAnswer engines(const ConvolutionQuery& query) = 0;
};

}  // namespace stowage
