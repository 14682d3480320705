#include "planner/validate_pytorch/streamed_modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "estimator/base/data_type.hpp"
#include "planner/validate_pytorch/module_span.hpp"

namespace stowage {

namespace {

// torch's caching allocator hands out multiples of it, and stowage.apply places parameters so.
constexpr std::int64_t unit_of_piece = 512;

/// How the step's nodes use a parameter.
struct ParameterUses {
  NodeId first_forward, last_forward, first_backward;
  bool is_updated = false;  ///< written, or read by the update
  bool is_plain = true;     ///< floating-point numbers, and no recurrent layer's
};

class CheckStreams {
 public:
  CheckStreams(const PytorchPlan& plan, const PlanPlaces& places, const StepDocument& document,
               const StepGraph& step)
      : plan_(plan),
        places_(places),
        document_(document),
        step_(step),
        modules_(document.modules) {}

  StreamedModules run() && {
    if (!plan_.stream.empty()) {
      name_parameters();
      find_uses();
    }
    StreamedModules found;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < plan_.stream.size(); ++i) {
      found.pieces.push_back(piece_of(i));
      bytes += found.pieces.back().bytes;
      if (i > 0 && found.pieces[i - 1].last >= found.pieces[i].first) {
        places_.note(wrong_, {"stream", i, "module"}, "'{}' does not run behind '{}'",
                     plan_.stream[i].module, plan_.stream[i - 1].module);
      }
    }
    found.check = verdict("streamed parameters", wrong_,
                          fmt::format("{} modules, {} bytes", plan_.stream.size(), bytes));
    return found;
  }

 private:
  /// A parameter has the name that the script's model says, where the step's file knows it.
  void name_parameters() {
    for (std::size_t s = 0; s < step_.storages.size(); ++s) {
      const Storage& storage = step_.storages[s];
      if (storage.storage_class != StorageClass::parameter || !storage.parameter.valid()) continue;
      const std::size_t p = storage.parameter.index();
      by_name_.emplace(
          p < document_.parameters.size() ? document_.parameters[p].name : storage.name,
          StorageId::of(s));
    }
  }

  void find_uses() {
    uses_.resize(step_.storages.size());
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const KernelNode& node = step_.nodes[n];
      const bool is_recurrent = kernel_name(node).find("rnn") != std::string_view::npos;
      for (const TensorView& view : node.reads) {
        ParameterUses& uses = uses_[view.storage.index()];
        if (is_recurrent || !is_floating_point(view.type)) uses.is_plain = false;
        use(node, NodeId::of(n), uses);
      }
      for (const StorageId held : node.holds) use(node, NodeId::of(n), uses_[held.index()]);
      for (const TensorView& view : node.writes) uses_[view.storage.index()].is_updated = true;
    }
  }

  static void use(const KernelNode& node, NodeId id, ParameterUses& uses) {
    switch (node.phase) {
      case Phase::forward:
      case Phase::loss:
        if (!uses.first_forward.valid()) uses.first_forward = id;
        uses.last_forward = id;
        break;
      case Phase::backward:
        if (!uses.first_backward.valid()) uses.first_backward = id;
        break;
      case Phase::update:
        uses.is_updated = true;
        break;
    }
  }

  [[nodiscard]] bool gets_gradient(const Storage& storage) const {
    const std::size_t p = storage.parameter.index();
    const bool is_in_step = p < step_.gradients.size() && step_.gradients[p].storage.valid();
    const bool is_in_script =
        plan_.trains && (p >= document_.parameters.size() || document_.parameters[p].trainable);
    return is_in_step || is_in_script || storage.carries_over;
  }

  PieceOfModule piece_of(std::size_t i) {
    const StreamedModule& entry = plan_.stream[i];
    const ModuleSpan span =
        module_span(step_, modules_, {.name = entry.module, .module = entry.module});
    if (!span.first.valid()) {
      places_.note(wrong_, {"stream", i, "module"}, "the step has no module '{}'", entry.module);
    } else if (!span.is_in_one_piece) {
      places_.note(wrong_, {"stream", i, "module"}, "'{}' does not run in one piece", entry.module);
    }
    PieceOfModule piece{.first = span.first, .last = span.last};
    for (std::size_t p = 0; p < entry.parameters.size(); ++p) add_parameter(i, p, piece);
    if (piece.bytes != entry.bytes.count()) {
      places_.note(wrong_, {"stream", i, "bytes"}, "the piece of '{}' has {} bytes, not {}",
                   entry.module, piece.bytes, entry.bytes.count());
    }
    const int uploads = piece.first_backward.valid() ? 2 : 1;
    if (uploads != entry.uploads) {
      places_.note(wrong_, {"stream", i, "uploads"},
                   "the parameters of '{}' come {} a pass, not {}", entry.module,
                   uploads == 1 ? "once" : "twice", entry.uploads == 1 ? "once" : "twice");
    }
    return piece;
  }

  void add_parameter(std::size_t i, std::size_t p, PieceOfModule& piece) {
    const std::string& name = plan_.stream[i].parameters[p];
    const auto refuse = [&](std::string_view why) {
      places_.note(wrong_, {"stream", i, "parameters", p}, "'{}' {}", name, why);
    };
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return refuse("is no parameter of the step");
    const Storage& storage = step_.storage(found->second);
    const ParameterUses& uses = uses_[found->second.index()];
    if (gets_gradient(storage) || uses.is_updated) return refuse("is trained");
    if (!storage.bytes.is_constant()) return refuse("has a size that follows the batch");
    if (!uses.is_plain) return refuse("has more than its bytes to PyTorch");
    if (!uses.first_forward.valid() || uses.first_forward < piece.first ||
        uses.last_forward > piece.last) {
      return refuse("is not read by its module's kernels alone");
    }
    if (uses.first_backward.valid() &&
        (!piece.first_backward.valid() || uses.first_backward < piece.first_backward)) {
      piece.first_backward = uses.first_backward;
    }
    piece.parameters.push_back(found->second);
    piece.offsets.push_back(piece.bytes);
    piece.bytes += (storage.bytes.constant + unit_of_piece - 1) / unit_of_piece * unit_of_piece;
  }

  const PytorchPlan& plan_;
  const PlanPlaces& places_;
  const StepDocument& document_;
  const StepGraph& step_;
  ScriptModules modules_;
  std::map<std::string, StorageId> by_name_;
  std::vector<ParameterUses> uses_;  // by storage
  Violations wrong_;
};

}  // namespace

StreamedModules find_streamed_modules(const PytorchPlan& plan, const PlanPlaces& places,
                                      const StepDocument& document, const StepGraph& step) {
  return CheckStreams(plan, places, document, step).run();
}

}  // namespace stowage
