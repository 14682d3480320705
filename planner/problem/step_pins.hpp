// StepPins: the side of the link that each node and each storage of a step is pinned to, and why.
//
// A pin (estimator/model/device_pin.hpp) applies to a step as follows.
//   SCOPE   the nodes of the layers that it matches, by path or by the node's own name, the updates
//           of their parameters, and their variables: parameters, buffers, gradients, state. A name
//           without wildcards is also the scope of that name, and may be any storage's
//   class:  the storages of the class
//   op:     the nodes whose operator, kernel or kernel family ("embedding" of embedding_forward)
//           it matches
// Storages that no pin names, but StorageHomes does, are pinned to their side after these.
// A node on the CPU computes there. A storage on the CPU lives there: what the GPU needs of it is
// uploaded for each node anew. A storage on the GPU stays there from its first touch to the last,
// and every node that writes it runs there too.
//
// Of several pins for one thing, the command line goes before the description, a scope before
// class: and op:, and of two scopes the inner one: the longer text before the first wildcard, then
// the longer text in all.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/model/device_pin.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Where storages lie that several passes of serving use: on one side in all of them. By name.
struct StorageHomes {
  std::set<std::string> gpu, host;

  [[nodiscard]] bool empty() const { return gpu.empty() && host.empty(); }
};

/// The pins that a user asks for, and the homes that a search has found.
struct PinRequest {
  std::vector<DevicePin> pins;
  /// A node without a GPU kernel runs on the CPU, with a note; else it is an error.
  bool soft_placement = true;
  StorageHomes homes = {};
};

struct PinReason {
  enum class Kind : std::uint8_t { asked, no_gpu_kernel, home };
  Kind kind = Kind::asked;
  std::string text;  ///< "class:parameter=cpu"; why no GPU kernel exists; of a home: which
  bool operator==(const PinReason&) const = default;
};
[[nodiscard]] std::string_view to_string(PinReason::Kind kind);

/// The pin of a node or of a storage.
struct AppliedPin {
  Pin pin = Pin::free;
  std::int32_t reason = -1;  ///< index into StepPins::reasons; -1: free
  bool operator==(const AppliedPin&) const = default;
};

struct StepPins {
  std::vector<AppliedPin> nodes;     ///< by NodeId; nodes and storages empty: nothing is pinned
  std::vector<AppliedPin> storages;  ///< by StorageId
  std::vector<PinReason> reasons;
  Diagnostics notes;  ///< about nodes that soft placement moves

  [[nodiscard]] bool empty() const { return reasons.empty(); }
  [[nodiscard]] Pin of(NodeId node) const;
  [[nodiscard]] Pin of(StorageId storage) const;
};

/// Errors: a pin that matches nothing (with a suggestion); two pins of the same rank that disagree;
/// a storage pinned to the GPU that a node on the CPU writes; a node without a GPU kernel where
/// placement is not soft. `layers` give the names of the operators.
[[nodiscard]] Result<StepPins> apply_pins(const StepGraph& step, const std::vector<Layer>& layers,
                                          const PinRequest& request);

}  // namespace stowage
