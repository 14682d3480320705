#include "gpu_probe/run/kernel_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "estimator/base/median.hpp"
#include "gpu_probe/run/node_call.hpp"
#include "gpu_probe/run/step_times.hpp"

namespace stowage {
namespace {

constexpr int timed_calls = 5;
constexpr std::int64_t place_multiple = 256;

/// A call as text: equal for calls that differ only in addresses and seeds.
std::string call_text(const KernelNode& node, std::int64_t batch) {
  std::string text(kernel_name(node));
  for (const auto* side : {&node.reads, &node.writes}) {
    text += '|';
    for (const TensorView& view : *side) {
      text += to_string(view.type);
      for (const Affine& size : view.shape) text += fmt::format(",{}", size.at(batch));
      text += ';';
    }
  }
  for (const auto& [name, value] : node.attributes.entries()) {
    if (name != "seed") text += fmt::format("|{}={}", name, to_string(value));
  }
  return text;
}

/// Where the arguments of one node lie, from the arena's beginning on.
struct NodePlaces {
  std::map<StorageId, Bytes> offsets;
  Bytes end;
};

NodePlaces places_of(const SizedStep& step, const KernelNode& node) {
  NodePlaces places;
  for (const auto* side : {&node.reads, &node.writes}) {
    for (const TensorView& view : *side) {
      if (!places.offsets.emplace(view.storage, places.end).second) continue;
      places.end += round_up(step.bytes(view.storage), Bytes(place_multiple));
    }
  }
  return places;
}

class KernelTimer {
 public:
  KernelTimer(const SizedStep& step, Backend& backend, Bytes workspace)
      : step_(step), backend_(backend), workspace_(workspace) {}

  Result<double> seconds(const KernelNode& node, const NodePlaces& places) {
    const NodeArguments arguments = arguments_of(node, step_.batch, [&](StorageId id) {
      return backend_.gpu_base() + places.offsets.at(id).count();
    });
    const bool takes_workspace = wants_workspace(node);
    const KernelCall call{
        .kernel = node.kernel,
        .device = Device::gpu,
        .attributes = &node.attributes,
        .reads = arguments.reads,
        .writes = arguments.writes,
        .engine = {},
        .tf32 = step_.graph->settings.convolutions.tf32,
        .workspace = takes_workspace ? backend_.gpu_base() + places.end.count() : nullptr,
        .workspace_bytes = takes_workspace ? workspace_ : Bytes()};
    std::vector<double> times;
    for (int i = 0; i <= timed_calls; ++i) {
      if (auto ok = clear(places.end); !ok) return tl::unexpected(std::move(ok.error()));
      const auto ticket = backend_.run(call);
      if (!ticket) return tl::unexpected(ticket.error());
      if (auto ok = backend_.synchronize(); !ok) return tl::unexpected(std::move(ok.error()));
      const auto span = backend_.ran(*ticket);
      if (!span) return tl::unexpected(span.error());
      if (i > 0) times.push_back(span->seconds());
    }
    if (auto ok = backend_.forget_tickets(); !ok) return tl::unexpected(std::move(ok.error()));
    return median(std::move(times), MiddleValue::lower);
  }

 private:
  /// Sets the arguments to 0, so that no kernel reads what another has left, such as an index.
  Result<void> clear(Bytes end) {
    if (auto ok = backend_.fill_gpu(backend_.gpu_base(), std::byte{0}, end); !ok) return ok;
    return backend_.synchronize();
  }

  const SizedStep& step_;
  Backend& backend_;
  Bytes workspace_;
};

}  // namespace

Result<KernelTimes> time_kernels(const SizedStep& step, Backend& backend, Bytes workspace,
                                 Bytes most) {
  const StepGraph& graph = *step.graph;
  KernelTimes result;
  std::set<std::string> known;
  std::vector<std::pair<std::size_t, NodePlaces>> nodes;
  Bytes arena;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    if (!known.insert(call_text(node, step.batch)).second) continue;
    NodePlaces places = places_of(step, node);
    const Bytes needed = places.end + (wants_workspace(node) ? workspace : Bytes());
    if (needed > most) {
      ++result.left_out;
      continue;
    }
    arena = std::max(arena, needed);
    nodes.emplace_back(i, std::move(places));
  }
  if (auto ok = backend.allocate({.gpu = arena, .host = Bytes(1), .pinned = Bytes(1)}); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  KernelTimer timer(step, backend, workspace);
  for (const auto& [i, places] : nodes) {
    const KernelNode& node = graph.nodes[i];
    auto seconds = timer.seconds(node, places);
    if (!seconds) {
      return failure(fmt::format("node '{}': {}", node.name, seconds.error().front().message));
    }
    result.times.push_back({NodeId::of(i), *seconds});
  }
  return result;
}

}  // namespace stowage
