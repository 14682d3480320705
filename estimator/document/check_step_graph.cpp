#include "estimator/document/check_step_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "estimator/memory/step_memory.hpp"
#include "estimator/step/kernel_table.hpp"
#include "estimator/step/own_scratch.hpp"
#include "estimator/step/written_first.hpp"
#include "estimator/workspace/attention_workspace.hpp"

namespace stowage {

namespace {

using Problem = std::optional<Diagnostic>;

template <typename... Args>
Problem problem(fmt::format_string<Args...> format, Args&&... args) {
  return Diagnostic{.message = fmt::format(format, std::forward<Args>(args)...)};
}

template <typename Named>
Problem repeated_name(const std::vector<Named>& all, std::string_view what) {
  std::unordered_set<std::string_view> seen;
  seen.reserve(all.size());
  for (const Named& named : all) {
    if (!seen.insert(named.name).second) return problem("two {} are called '{}'", what, named.name);
  }
  return std::nullopt;
}

// Sums over all parameters are made with plain arithmetic.
Problem check_gradients(const StepGraph& graph) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 57;
  std::int64_t elements = 0;
  for (const TensorView& gradient : graph.gradients) {
    const Affine count = element_count(gradient.shape);
    if (!std::ranges::all_of(gradient.shape, &Affine::is_constant)) {
      return problem("a parameter's gradient does not depend on the batch");
    }
    if (count.constant < 0 || count.constant > most_elements) {
      return problem("a parameter's gradient has {} elements", count.constant);
    }
    elements += count.constant;
    if (elements > most_elements) return problem("the parameters have too many elements");
  }
  return std::nullopt;
}

Problem check_lists(const StepGraph& graph, const std::vector<Parameter>& parameters) {
  if (graph.nodes.empty()) return problem("there are no nodes: nothing is computed");
  const auto micro_batches = static_cast<std::size_t>(graph.settings.micro_batches);
  const bool trains = graph.settings.mode == Mode::train;
  if (graph.inputs.size() % micro_batches != 0) {
    return problem("{} inputs cannot be as many for each of {} micro-batches", graph.inputs.size(),
                   micro_batches);
  }
  if (graph.losses.size() != (trains ? micro_batches : 0)) {
    return problem("'losses' has {} tensors; {}", graph.losses.size(),
                   trains ? fmt::format("it is one for each of {} micro-batches", micro_batches)
                          : "an inference has none");
  }
  if (graph.gradients.size() != parameters.size()) {
    return problem("'gradients' has {} tensors; it is one for each of {} parameters",
                   graph.gradients.size(), parameters.size());
  }
  const auto is_missing = [](const TensorView& view) { return !view.storage.valid(); };
  if (is_missing(graph.output) || std::ranges::any_of(graph.inputs, is_missing) ||
      std::ranges::any_of(graph.losses, is_missing)) {
    return problem("every input, every loss and the output has a storage");
  }
  return check_gradients(graph);
}

Problem check_order(const StepGraph& graph) {
  if (!graph.settings.order.empty()) return std::nullopt;  // an order of its own
  int micro_batch = 0;
  for (const KernelNode& node : graph.nodes) {
    if (node.phase == Phase::update) continue;
    if (node.micro_batch < micro_batch) {
      return problem("node '{}' of micro-batch {} stands after one of micro-batch {}", node.name,
                     node.micro_batch, micro_batch);
    }
    micro_batch = node.micro_batch;
  }
  return std::nullopt;
}

// Whether it is scratch, which lives only during the node that uses it.
bool is_scratch(const Storage& storage) {
  return storage.storage_class == StorageClass::temporary ||
         storage.storage_class == StorageClass::workspace;
}

// A library's optimizer runs as a program of its own: a variable keeps its value until it is
// assigned again, so that nodes of the update have temporaries in common.
bool is_carried(const StepGraph& graph, StorageId id, const KernelNode& from,
                const KernelNode& to) {
  return graph.kernel_set().library_optimizer && from.phase == Phase::update &&
         to.phase == Phase::update && graph.storage(id).storage_class == StorageClass::temporary;
}

Problem check_temporaries(const StepGraph& graph) {
  std::vector<std::int32_t> owner(graph.storages.size(), -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    const auto owner_of = [&](StorageId id) {
      std::int32_t& of = owner[id.index()];
      if (of < 0) of = static_cast<std::int32_t>(i);
      return static_cast<std::size_t>(of);
    };
    for (const StorageId id : node.temporaries) {
      if (is_scratch(graph.storage(id))) continue;
      return problem("node '{}' has '{}' among its temporaries, which is of class {}", node.name,
                     graph.storage(id).name, to_string(graph.storage(id).storage_class));
    }
    const auto touches_anothers = [&](StorageId id) {
      return belongs_to_one_node(graph, id) && owner_of(id) != i;
    };
    const auto takes_anothers = [&](StorageId id) {
      return touches_anothers(id) && !is_carried(graph, id, graph.nodes[owner_of(id)], node);
    };
    const auto of_view = [&](const TensorView& view) { return touches_anothers(view.storage); };
    if (std::ranges::any_of(node.reads, of_view) || std::ranges::any_of(node.writes, of_view) ||
        std::ranges::any_of(node.temporaries, takes_anothers) ||
        std::ranges::any_of(node.holds, touches_anothers)) {
      return problem("node '{}' uses another node's temporary", node.name);
    }
  }
  return std::nullopt;
}

Problem check_written_first(const StepGraph& graph) {
  const auto found = read_before_written(graph);
  return found ? problem("{}", *found) : std::nullopt;
}

Problem check_storage(const StepGraph& graph, const Storage& storage, const ScriptHold& hold,
                      const Touches& touches) {
  const auto only_if = [&](bool has, Persistence persistence, std::string_view flag,
                           std::string_view word) -> Problem {
    if (!has || storage.persistence == persistence) return std::nullopt;
    return problem("'{}' is not {}, so that it cannot have '{}'", storage.name, word, flag);
  };
  using enum Persistence;
  if (auto found = only_if(storage.carries_over, persistent, "carries_over", "persistent")) {
    return found;
  }
  if (auto found = only_if(hold.first_made_by.valid(), persistent, "first_made_by", "persistent")) {
    return found;
  }
  if (auto found =
          only_if(hold.loaded_before.valid(), from_host, "loaded_before", "from the host")) {
    return found;
  }
  if (auto found = only_if(hold.replaced_after.valid(), transient, "replaced_after", "transient")) {
    return found;
  }
  if (hold.loaded_before.valid() && !touches.empty() &&
      touches.front() < hold.loaded_before.value) {
    return problem("'{}' is used by a node before the one it is loaded before", storage.name);
  }
  const auto last_node = static_cast<std::int32_t>(graph.nodes.size()) - 1;
  if (hold.first_made_by.valid() && (touches.empty() || hold.first_made_by.value >= last_node)) {
    return problem("'{}' is made by a node of the first step and not used after it", storage.name);
  }
  const bool is_constant = storage.storage_class == StorageClass::parameter;
  if (is_constant && (!storage.bytes.is_constant() || storage.bytes.constant < 0)) {
    return problem("the bytes of parameter '{}' do not depend on the batch", storage.name);
  }
  return std::nullopt;
}

/// One past the largest element that a view reaches; none: it has no elements.
std::optional<Affine> reach(const TensorView& view) {
  Affine last = view.offset;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == Affine(0)) return std::nullopt;
    last = last + (view.shape[i] - Affine(1)) * view.strides[i];
  }
  return last + Affine(1);
}

bool is_within(const TensorView& view, const Affine& bytes, std::optional<std::int64_t> batch) {
  const std::optional<Affine> end = reach(view);
  if (!end) return true;
  const Affine needed = *end * Affine(element_size(view.type));
  if (batch) return needed.at(*batch) <= bytes.at(*batch);
  // Both are linear in the batch, so batch 1 and the slope are checked.
  return needed.at(1) <= bytes.at(1) && needed.slope <= bytes.slope;
}

Problem check_view(const StepGraph& graph, const TensorView& view, std::string_view whose,
                   std::optional<std::int64_t> batch) {
  if (!view.storage.valid()) return std::nullopt;
  const Storage& storage = graph.storage(view.storage);
  const auto is_negative = [](const Affine& a) { return a.constant < 0 && a.slope <= 0; };
  if (is_negative(view.offset) || std::ranges::any_of(view.strides, is_negative)) {
    return problem("{} sees '{}' with a negative stride or offset", whose, storage.name);
  }
  try {
    if (!is_within(view, storage.bytes, batch)) {
      return problem("{} sees '{}' as {} of {}, which is more than its {} bytes", whose,
                     storage.name, to_string(view.type), to_string(view.shape),
                     storage.bytes.to_string());
    }
  } catch (const ArithmeticOverflow&) {
    return problem("{} sees '{}' as a tensor past 64 bits", whose, storage.name);
  } catch (const NotAffine&) {
    return problem("{} sees '{}' as a tensor that grows faster than the batch", whose,
                   storage.name);
  }
  const bool whole = view.offset == Affine(0) && view.strides == contiguous_strides(view.shape);
  if (graph.kernel_set().contiguous_only && !whole) {
    return problem("{} sees '{}' with strides or an offset, which the {} kernels do not take",
                   whose, storage.name, graph.kernel_set().name);
  }
  return std::nullopt;
}

Problem check_views(const StepGraph& graph, std::optional<std::int64_t> batch) {
  const auto first_of = [&](const std::vector<TensorView>& views,
                            std::string_view whose) -> Problem {
    for (const TensorView& view : views) {
      if (auto found = check_view(graph, view, whose, batch)) return found;
    }
    return std::nullopt;
  };
  for (const KernelNode& node : graph.nodes) {
    const std::string whose = fmt::format("node '{}'", node.name);
    if (auto found = first_of(node.reads, whose)) return found;
    if (auto found = first_of(node.writes, whose)) return found;
  }
  for (const SavedTensor& saved : graph.saved) {
    if (!saved.call) continue;
    if (auto found = check_view(graph, saved.call->view, "a saved tensor", batch)) return found;
  }
  if (auto found = first_of(graph.inputs, "'inputs'")) return found;
  if (auto found = first_of(graph.losses, "'losses'")) return found;
  if (auto found = first_of(graph.gradients, "'gradients'")) return found;
  return first_of({graph.output}, "'output'");
}

template <typename Value>
bool has(const KernelNode& node, std::string_view name) {
  return std::ranges::any_of(node.attributes.entries(), [&](const auto& entry) {
    return entry.first == name && std::holds_alternative<Value>(entry.second);
  });
}

Problem check_attention(const KernelNode& node) {
  const bool forward = node.kernel == Kernel::attention_forward;
  if (!forward && node.kernel != Kernel::attention_backward) return std::nullopt;
  if (!has<std::string>(node, "implementation")) {
    return problem("node '{}' is attention and lacks the attribute 'implementation'", node.name);
  }
  if (!is_cudnn_attention(node)) return std::nullopt;
  if (!has<bool>(node, "causal") || !has<double>(node, "dropout")) {
    return problem("node '{}' is cuDNN's attention and lacks the attribute 'causal' or 'dropout'",
                   node.name);
  }
  // forward: q, k, v, [bias] -> out; backward: dout, q, k, v, out, logsumexp, [bias]
  const std::size_t tensors = forward ? 3 : 5;
  const std::size_t most = forward ? 4 : 7;
  bool fits = node.reads.size() >= (forward ? 3 : 6) && node.reads.size() <= most &&
              !node.writes.empty() && (!forward || node.writes.front().shape.size() == 4);
  for (std::size_t i = 0; fits && i < tensors; ++i) fits = node.reads[i].shape.size() == 4;
  if (fits && node.reads.size() == most) {
    const std::size_t axes = node.reads.back().shape.size();
    fits = axes >= 1 && axes <= 4;
  }
  if (fits) return std::nullopt;
  return problem("node '{}' is cuDNN's attention and has not its arguments", node.name);
}

std::vector<DataType> types_of(const std::vector<TensorView>& views) {
  std::vector<DataType> types;
  types.reserve(views.size());
  for (const TensorView& view : views) types.push_back(view.type);
  return types;
}

// Checks the number and types of arguments by the kernel's signature, and the shapes and attributes
// that initial values depend on (gpu_probe/run/initial_values.cpp). A kernel checks everything else
// when it is called.
Problem check_arguments(const KernelNode& node) {
  // An index is drawn from below the extent.
  const auto has_extent = [&](std::size_t argument, std::size_t axis) {
    if (node.reads.size() <= argument || node.reads[argument].shape.size() <= axis) return false;
    const Affine extent = node.reads[argument].shape[axis];
    return extent.at(1) >= 1 && extent.slope >= 0;
  };
  if (node.writes.empty()) return problem("node '{}' writes nothing", node.name);
  const auto reads = types_of(node.reads), writes = types_of(node.writes);
  if (const auto found = call_problem(node.kernel, {reads, writes}, std::nullopt)) {
    return problem("node '{}' calls {}, which {}", node.name, to_string(node.kernel), *found);
  }
  bool fits = true;
  switch (node.kernel) {
    case Kernel::embedding_forward:
      fits = has_extent(1, 0);
      break;
    case Kernel::take_forward:
    case Kernel::gather_forward:
    case Kernel::index_add:
    case Kernel::scatter_add: {
      const bool named = has<std::int64_t>(node, "axis") && node.attributes.integer("axis") >= 0;
      for (std::size_t i = 1; named && fits && i < node.reads.size(); ++i) {
        const std::size_t next = node.kernel == Kernel::take_forward ? i - 1 : 0;
        fits = has_extent(0, static_cast<std::size_t>(node.attributes.integer("axis")) + next);
      }
      fits = fits && named;
      break;
    }
    case Kernel::one_hot:
      fits = !node.writes[0].shape.empty() && node.writes[0].shape.back().at(1) >= 1;
      break;
    case Kernel::cross_entropy_forward:
    case Kernel::nll_loss_forward:
      fits = has_extent(0, 1);
      break;
    case Kernel::bce_forward:
      fits = !node.attributes.has("logits") || has<bool>(node, "logits");
      break;
    case Kernel::unary_forward:
      fits = has<std::string>(node, "function") &&
             (node.attributes.text("function") != "power" || has<double>(node, "exponent"));
      break;
    default:
      break;
  }
  if (fits) return std::nullopt;
  return problem("node '{}' lacks an argument or an attribute of {}", node.name,
                 to_string(node.kernel));
}

// Checks results that overwrite an argument. If a signature names one storage on both sides, its
// argument's number depends on those that are left out, so such results are not checked.
Problem check_in_place(const StepGraph& graph, const KernelNode& node) {
  if (!no_device_reason(node.kernel).empty() || updates_arguments(node.kernel)) return std::nullopt;
  for (std::size_t written = 0; written < node.writes.size(); ++written) {
    const TensorView& result = node.writes[written];
    const std::string& name = graph.storage(result.storage).name;
    std::size_t times = 0;
    for (std::size_t read = 0; read < node.reads.size(); ++read) {
      const TensorView& argument = node.reads[read];
      if (argument.storage != result.storage) continue;
      const bool fits = may_write_over(node.kernel, written, read) && ++times == 1 &&
                        argument.type == result.type && argument.shape == result.shape;
      if (fits) continue;
      return problem("node '{}' writes over '{}', which {} still reads", node.name, name,
                     to_string(node.kernel));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Diagnostic> step_graph_problem(const StepGraph& graph,
                                             const std::vector<Parameter>& parameters,
                                             std::optional<std::int64_t> batch) {
  if (auto found = check_lists(graph, parameters)) return found;
  if (auto found = repeated_name(graph.nodes, "nodes")) return found;
  if (auto found = repeated_name(graph.storages, "storages")) return found;
  if (auto found = check_order(graph)) return found;
  if (auto found = check_temporaries(graph)) return found;
  if (auto found = check_written_first(graph)) return found;
  const std::vector<Touches> touches = storage_touches(graph);
  ScriptHolds::Cursor holds(graph.script_holds);
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const ScriptHold& hold = holds.advance_to(StorageId::of(i));
    if (auto found = check_storage(graph, graph.storages[i], hold, touches[i])) return found;
  }
  for (const KernelNode& node : graph.nodes) {
    if (auto found = check_attention(node)) return found;
    if (!graph.kernel_set().executable) continue;
    if (auto found = check_arguments(node)) return found;
    if (auto found = check_in_place(graph, node)) return found;
  }
  return check_views(graph, batch);
}

std::optional<Diagnostic> view_problem(const StepGraph& graph, const TensorView& view,
                                       std::string_view whose, std::optional<std::int64_t> batch) {
  return check_view(graph, view, whose, batch);
}

}  // namespace stowage
